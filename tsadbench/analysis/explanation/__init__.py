"""Why a trial's detector raised its alarms, as values and as text."""
