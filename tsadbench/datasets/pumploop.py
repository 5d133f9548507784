"""pumploop: a simulated water-pump loop that ships with the package, for machines without any other data.

An inverter feeds a motor, the motor drives a centrifugal pump, the pump pushes water from a tank through a valve before
it and a valve after it, and back. Eight sensors, named as in SKAB; one row a second. SI units inside, the sensors' own
outside. Everything is drawn from one seed and takes part of a second.

Equations (t in s, one explicit Euler step a second; fast electrical and mechanical transients have settled by then):

* Speed: ``n = V / V0 - slip``, as a share of the nominal speed; ``slip = s0 * P_shaft / P0``. The inverter's voltage V
  follows the speed that is asked for with a lag of 3 s.
* Pump and loop: the pump's head ``h0 n^2 - h1 Q^2`` meets the losses ``(r + k_in / x_in^2 + k_out / x_out^2) Q^2``,
  so the flow settles at ``Q = n sqrt(h0 / (h1 + r + k_in / x_in^2 + k_out / x_out^2))``, with a lag of 2 s; x are the
  valves' openings (Gulich, Centrifugal Pumps, 3rd ed., ch. 4 and 11: affinity laws, system curve).
* Pressure at the pump's outlet: ``p = p_tank + rho g (h0 n^2 - h1 Q^2 - k_in / x_in^2 Q^2)``.
* Power: ``P_hydraulic = rho g (h0 n^2 - h1 Q^2) Q``; ``P_shaft = P_hydraulic / eta + P_friction n^2``;
  current ``I = (P_shaft + R(T_motor) I^2) / (V cos phi)``, with ``R = R0 (1 + 0.0039 (T_motor - 20))`` of copper.
* Heat: ``C_motor dT_motor/dt = R I^2 + (1 - eta) P_shaft - g_air (T_motor - T_air) - g_water(Q) (T_motor - T_water)``;
  ``C_water dT_water/dt = P_hydraulic + g_water(Q) (T_motor - T_water) - g_tank (T_water - T_air)``.
* Vibration, RMS: across the shaft ``a1 n^2 (1 + unbalance)``, along it ``a2 n^2 + turbulence Q^3``; both rise with
  cavitation, which begins when the suction pressure falls below a limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.base.dataset import DataOptions, Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray

# As SKAB's card has them.
SENSORS = (
    "Accelerometer1RMS",
    "Accelerometer2RMS",
    "Current",
    "Pressure",
    "Temperature",
    "Thermocouple",
    "Voltage",
    "Volume Flow RateRMS",
)
# Of twelve, the seed whose faults lie most evenly over the rows: a row's position must not give its label away.
SEED = 4
N_TRAIN, TRAIN_ROWS = 6, 1500
GROUPS = {"valve1": 16, "valve2": 4, "other": 14}

_HERE = Path(__file__).parent
_RHO_G = 998.0 * 9.81  # N/m3
# Nominal values: a small circulation pump of some 2 m3/h, as on a testbed.
_VOLTAGE, _COS_PHI, _SHAFT_POWER = 230.0, 0.8, 140.0  # V, -, W
_HEAD, _HEAD_LOSS = 12.0, 8.0e6  # m; m / (m3/s)^2
_PIPE, _VALVE_IN, _VALVE_OUT = 6.0e6, 1.0e6, 4.0e6  # m / (m3/s)^2
_EFFICIENCY, _FRICTION, _SLIP = 0.55, 25.0, 0.03  # -, W, -
_RESISTANCE, _COPPER = 4.0, 0.0039  # Ohm, 1/K
_HEAT_MOTOR, _HEAT_WATER = 6.0e3, 4.2e4  # J/K
_TO_AIR, _TO_WATER, _TANK_TO_AIR = 1.5, 2.5, 7.0  # W/K
_TANK_PRESSURE, _SUCTION_LIMIT = 1.05e5, 0.93e5  # Pa
_ACROSS, _ALONG, _TURBULENCE = 0.12, 0.08, 3.0e8  # g, g, g / (m3/s)^3


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the loop; the defaults are a sound one.

    Parameters
    ----------
    valve_in, valve_out
        Factors on the openings of the valves before and after the pump.
    unbalance
        Added share of the vibration across the shaft.
    air
        Share of air in the water: lowers head and efficiency, and cavitates.
    leak
        Share of the flow that does not come back past the flow meter.
    friction
        Factor on the friction of the bearings.
    winding
        Factor on the motor's resistance.
    fouling
        Factor on what motor and tank give off as heat.
    wear
        Factor on the pump's head.
    """

    valve_in: float = 1.0
    valve_out: float = 1.0
    unbalance: float = 0.0
    air: float = 0.0
    leak: float = 0.0
    friction: float = 1.0
    winding: float = 1.0
    fouling: float = 1.0
    wear: float = 1.0


SOUND = Fault()
# What happens in the group `other`, each twice.
OTHER_FAULTS: Mapping[str, Fault] = {
    "unbalance": Fault(unbalance=0.15),
    "air": Fault(air=0.015),
    "leak": Fault(leak=0.08),
    "friction": Fault(friction=1.5),
    "winding": Fault(winding=1.3),
    "fouling": Fault(fouling=0.6),
    "wear": Fault(wear=0.93),
}


def load(options: DataOptions) -> LabelledDataset:  # noqa: ARG001 - it has no files
    """Return pumploop: 9,000 normal rows to train on, 34 recordings with a fault each to test on.

    The same numbers on every machine: they are rounded as sensors round.
    """
    generator = np.random.default_rng(SEED)
    train = tuple(
        _recording(f"normal/{i}", *_simulate(generator, TRAIN_ROWS, SOUND, np.zeros(TRAIN_ROWS, dtype=np.bool_)))
        for i in range(N_TRAIN)
    )
    test, labels = [], {}
    for group, count in GROUPS.items():
        for i in range(count):
            n_rows = int(generator.integers(900, 1301))
            active = _faulty_rows(generator, n_rows)
            fault = _fault(group, i, generator)
            test.append(_recording(f"{group}/{i}", *_simulate(generator, n_rows, fault, active)))
            labels[f"{group}/{i}"] = active
    splits = {"overall": tuple(labels), **{g: tuple(n for n in labels if n.startswith(f"{g}/")) for g in GROUPS}}
    dataset = Dataset(
        name="pumploop",
        train=train,
        test=tuple(test),
        splits=splits,
        description=(_HERE / "pumploop.description.md").read_text(encoding="utf-8"),
        prior=Prior.load(_HERE / "pumploop.prior.json", origin="pumploop"),
        citation="Simulated by tsadbench (tsadbench.datasets.pumploop); no real plant stands behind it.",
        licence="MIT",
    )
    return LabelledDataset(dataset, Labels(rows=labels, splits=splits))


def _recording(name: str, values: FloatArray, time: FloatArray) -> Recording:
    return Recording(id=name, values=values, sensors=SENSORS, time=time)


def _fault(group: str, number: int, generator: np.random.Generator) -> Fault:
    if group == "valve1":
        return Fault(valve_out=float(generator.uniform(0.55, 0.75)))
    if group == "valve2":
        return Fault(valve_in=float(generator.uniform(0.4, 0.55)))
    return list(OTHER_FAULTS.values())[number % len(OTHER_FAULTS)]


def _faulty_rows(generator: np.random.Generator, n_rows: int) -> BoolArray:
    """Return the rows with a fault, [n_rows]: it may begin before the recording or outlast it, so no row is special."""
    length = int(generator.integers(250, 500))
    start = int(generator.integers(-length // 2, n_rows - length // 2))
    row = np.arange(n_rows)
    return (row >= start) & (row < start + length)


def _simulate(
    generator: np.random.Generator, n_rows: int, fault: Fault, active: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the sensors' values [n_rows, 8] and the times [n_rows]."""
    speed, opening = _operating_points(generator, n_rows, 0.7, 1.0), _operating_points(generator, n_rows, 0.4, 1.0)
    air = float(generator.uniform(17.0, 27.0)) + np.cumsum(generator.normal(0.0, 0.01, n_rows))
    mains = _wander(generator, n_rows, 0.006)
    loop = Loop(speed[0] * _VOLTAGE, float(opening[0]), float(air[0]))
    states = np.array(
        [
            loop.step(speed[t] * _VOLTAGE * (1 + mains[t]), opening[t], air[t], fault if active[t] else SOUND)
            for t in range(n_rows)
        ]
    )
    noise = np.array([0.004, 0.004, 0.015, 0.006, 0.08, 0.05, 0.35, 0.25])  # standard deviations, the sensors' units
    values = np.round(states + generator.normal(size=states.shape) * noise, 4)
    start = float(generator.integers(1_700_000_000, 1_800_000_000))
    return values, start + np.arange(float(n_rows))


def _operating_points(generator: np.random.Generator, n_rows: int, low: float, high: float) -> FloatArray:
    """Return what operators set, [n_rows]: each value is held for 40 to 240 s."""
    points: list[float] = []
    while len(points) < n_rows:
        points += [float(generator.uniform(low, high))] * int(generator.integers(40, 241))
    return np.array(points[:n_rows])


def _wander(generator: np.random.Generator, n_rows: int, deviation: float) -> FloatArray:
    """Return noise with a memory of some 20 s, [n_rows]."""
    kept = 0.95
    drawn = generator.normal(0.0, deviation * math.sqrt(1 - kept**2), n_rows)
    noise, value = np.empty(n_rows), 0.0
    for t in range(n_rows):
        value = kept * value + drawn[t]
        noise[t] = value
    return noise


class Loop:
    """The loop's state, in SI units: motor voltage, flow, and both temperatures.

    Parameters
    ----------
    voltage, opening, air
        V; opening of both valves' command (0 to 1); degrees Celsius around it.
    """

    def __init__(self, voltage: float, opening: float, air: float) -> None:
        self.voltage = voltage
        self.flow = _settled_flow(0.95 * voltage / _VOLTAGE, opening, SOUND)
        self.current = 1.0
        self.motor, self.water = air + 22.0, air + 9.0
        self.speed = 0.95 * voltage / _VOLTAGE

    def step(self, asked: float, opening: float, air: float, fault: Fault) -> tuple[float, ...]:
        """Go on by one second.

        Parameters
        ----------
        asked, opening, air
            Motor voltage that is asked for (V), valve opening, temperature around it (degrees Celsius).
        fault
            What is wrong now.

        Returns
        -------
        tuple
            What the sensors would show without noise, in their order and units.
        """
        self.voltage += (asked - self.voltage) / 3.0
        self.flow += (_settled_flow(self.speed, opening, fault) - self.flow) / 2.0
        head = max(0.0, _lift(self.speed, fault) - _HEAD_LOSS * self.flow**2)
        hydraulic = _RHO_G * head * self.flow
        shaft = hydraulic / (_EFFICIENCY * (1 - 2 * fault.air)) + _FRICTION * fault.friction * self.speed**2
        self.speed = self.voltage / _VOLTAGE - _SLIP * shaft / _SHAFT_POWER
        resistance = _RESISTANCE * fault.winding * (1 + _COPPER * (self.motor - 20.0))
        self.current = (shaft + resistance * self.current**2) / (self.voltage * _COS_PHI)
        self._warm(shaft, hydraulic, resistance, air, fault)
        suction_loss = _VALVE_IN / (opening * fault.valve_in) ** 2 * self.flow**2
        suction = _TANK_PRESSURE - _RHO_G * suction_loss
        cavitation = max(0.0, (_SUCTION_LIMIT - suction) / 1e5) * 0.6 + fault.air
        return (
            _ACROSS * self.speed**2 * (1 + fault.unbalance) + 0.5 * cavitation,
            _ALONG * self.speed**2 + _TURBULENCE * self.flow**3 + cavitation,
            self.current,
            (suction + _RHO_G * head) / 1e5,
            self.motor,
            self.water,
            self.voltage,
            self.flow * (1 - fault.leak) * 60_000.0,
        )

    def _warm(self, shaft: float, hydraulic: float, resistance: float, air: float, fault: Fault) -> None:
        exchanged = _TO_WATER * (0.4 + self.flow / 1e-3) * (self.motor - self.water)
        lost = resistance * self.current**2 + (1 - _EFFICIENCY) * shaft
        self.motor += (lost - fault.fouling * _TO_AIR * (self.motor - air) - exchanged) / _HEAT_MOTOR
        self.water += (hydraulic + exchanged - fault.fouling * _TANK_TO_AIR * (self.water - air)) / _HEAT_WATER


def _lift(speed: float, fault: Fault) -> float:
    """Return the pump's head without flow, m."""
    return _HEAD * fault.wear * (1 - 2 * fault.air) * speed**2


def _settled_flow(speed: float, opening: float, fault: Fault) -> float:
    """Return the flow at which the pump's head meets the loop's losses, m3/s."""
    valve_in, valve_out = opening * fault.valve_in, opening * fault.valve_out
    losses = _HEAD_LOSS + _PIPE + _VALVE_IN / valve_in**2 + _VALVE_OUT / valve_out**2
    return math.sqrt(_lift(speed, fault) / losses)
