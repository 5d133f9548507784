"""The leaderboards as static pages, from committed tables alone: `tsadbench site`."""
