"""What every page is made of: templates, the frame around a page, answers, errors, bodies, words and markup."""
