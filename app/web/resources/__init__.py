"""Resources and resource templates: their lists, the page of each, subscriptions to them."""
