"""The report: one HTML file that holds a run store's tables, curves, series and manifests, and needs no network."""
