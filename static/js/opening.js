// A recording is opened by choosing its file, or by dropping it anywhere on the page: it is sent as it is, with a bar.
const form = document.getElementById('open-file');
const chosen = document.getElementById('recording-file');
const said = document.getElementById('open-file-said');
const bar = document.getElementById('open-file-bar');

const say = (words, isWrong = false) => {
  said.textContent = words;
  said.classList.toggle('err', isWrong);
  // the same file can be chosen again, mended
  if (isWrong) chosen.value = '';
};

function send(file) {
  const request = new XMLHttpRequest();
  request.open('POST', form.action);
  request.setRequestHeader('accept', 'application/json');
  request.setRequestHeader('content-type', 'application/octet-stream');
  request.setRequestHeader('x-file-name', encodeURIComponent(file.name));
  request.upload.onprogress = (event) => {
    bar.hidden = false;
    bar.value = event.lengthComputable ? (100 * event.loaded) / event.total : 0;
  };
  request.onloadend = () => {
    bar.hidden = true;
  };
  request.onload = () => {
    let answer = {};
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      // a proxy between us may answer in its own words
    }
    if (request.status === 201) {
      location.href = form.action.slice(0, -'/recordings'.length) + answer.url;
    } else {
      say(answer.error?.message ?? 'The file could not be sent.', true);
    }
  };
  request.onerror = () => say('Parley does not answer.', true);
  say(`Sending ${file.name}`);
  request.send(file);
}

if (form) {
  chosen.addEventListener('change', () => chosen.files[0] && send(chosen.files[0]));
  // it was chosen before this was here
  if (chosen.files[0]) send(chosen.files[0]);
  document.addEventListener('dragover', (event) => {
    if (event.dataTransfer?.types.includes('Files')) {
      event.preventDefault();
      document.body.dataset.dropping = '';
    }
  });
  for (const name of ['dragleave', 'drop']) {
    document.addEventListener(name, () => delete document.body.dataset.dropping);
  }
  document.addEventListener('drop', (event) => {
    const file = event.dataTransfer?.files[0];
    if (file) {
      event.preventDefault();
      send(file);
    }
  });
}
