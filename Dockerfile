# Parley in a container. `docker compose up` is the short way; docker-compose.yml says how it is meant to be published.

FROM python:3.13-slim AS build
WORKDIR /src
# Dependencies first, and only by hash: this layer stays as it is until a list in .lock/ changes.
COPY .lock/build.txt .lock/runtime.txt .lock/
RUN pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes -r .lock/build.txt \
    && python -m venv --without-pip /opt/parley \
    && uv pip install --no-cache --python /opt/parley/bin/python --only-binary :all: --require-hashes -r .lock/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY app/ app/
COPY templates/ templates/
COPY static/ static/
RUN python -m build --wheel --no-isolation --outdir /dist \
    && uv pip install --no-cache --python /opt/parley/bin/python --no-deps /dist/*.whl \
    && /opt/parley/bin/python -m compileall -q /opt/parley/lib

FROM python:3.13-slim
# bwrap is the sandbox around servers of a team, where the host allows user namespaces. /data belongs to the user, so that
# a volume mounted there can be written.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --create-home --shell /usr/sbin/nologin parley \
    && install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /opt/parley /opt/parley
ENV PATH=/opt/parley/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /home/parley
EXPOSE 6280
# By http.client, which no proxy variable of the container leads astray.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 6280, timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
# Inside a container 0.0.0.0 is the only address that can be published. --published-on-loopback is the operator's word
# that the port is published on 127.0.0.1 and nowhere else; the Host allow-list stays loopback all the same.
CMD ["parley", "--host", "0.0.0.0", "--published-on-loopback", "--no-open"]
