"""The pump loop's physics, for one loop or, with arrays [n_loops] instead of numbers, for many at once.

States have SI units, outputs the sensors' units. Each step is an explicit Euler step of one second; fast electrical and
mechanical transients have settled by then. The flow settles where the pump's head ``h0 n^2 - h1 Q^2`` meets the loop's
losses ``r Q^2`` (Gulich, Centrifugal Pumps, 3rd ed., ch. 4 and 11: affinity laws, system curve). The winding's
resistance rises with the motor's temperature. Motor and water store heat. Vibration rises with speed, flow and
cavitation, which begins when the suction pressure falls below a limit.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from tsadbench.utils.arrays import FloatArray

# The names in SKAB's card.
SENSORS = (
    "Accelerometer1RMS", "Accelerometer2RMS", "Current", "Pressure", "Temperature", "Thermocouple", "Voltage",
    "Volume Flow RateRMS",
)  # fmt: skip
Quantity: TypeAlias = float | FloatArray

NOMINAL_VOLTAGE = 230.0  # V
_RHO_G = 998.0 * 9.81  # N/m3
# Nominal values of a small circulation pump of about 2 m3/h, as on a testbed.
_COS_PHI, _SHAFT_POWER = 0.8, 140.0  # -, W
_HEAD, _HEAD_LOSS = 12.0, 8.0e6  # m; m / (m3/s)^2
_PIPE, _VALVE_IN, _VALVE_OUT = 6.0e6, 1.0e6, 4.0e6  # m / (m3/s)^2
_EFFICIENCY, _FRICTION, _SLIP = 0.55, 25.0, 0.03  # -, W, -
_RESISTANCE, _COPPER = 20.0, 0.0039  # Ohm, 1/K
# A motor of 2 kg of iron and copper, 1 l of water and a cooler: heat settles within minutes, so that a recording
# shows both how a fault changes the temperatures and how they recover.
_HEAT_MOTOR, _HEAT_WATER = 0.9e3, 4.2e3  # J/K
_TO_AIR, _TO_WATER, _COOLER = 1.5, 2.5, 14.0  # W/K
_TANK_PRESSURE, _SUCTION_LIMIT = 1.05e5, 0.93e5  # Pa
_ACROSS, _ALONG, _TURBULENCE = 0.12, 0.08, 3.0e8  # g, g, g / (m3/s)^3


class Fault(NamedTuple):
    """The amount of each fault in the loop; 0 = none."""

    valve1: Quantity = 0.0  # share by which the valve after the pump is closed
    valve2: Quantity = 0.0  # the same for the valve before the pump
    unbalance: Quantity = 0.0  # added vibration across the shaft at nominal speed, g
    air: Quantity = 0.0  # share of air in the water: lowers head and efficiency, and cavitates
    leak: Quantity = 0.0  # share of the flow that bypasses the flow meter
    friction: Quantity = 0.0  # added friction power of the bearings at nominal speed, W
    winding: Quantity = 0.0  # added resistance of the motor's winding at 20 degrees Celsius, Ohm
    fouling: Quantity = 0.0  # share by which motor and cooler give off less heat
    wear: Quantity = 0.0  # share of the pump's head that is lost


SOUND = Fault()


class Loop:
    """The loop's state, in SI units: motor voltage, flow, and both temperatures.

    It starts from a voltage (V), an opening of both valves (0 to 1) and the temperature around it (degrees Celsius).
    """

    def __init__(self, voltage: Quantity, opening: Quantity, air: Quantity) -> None:
        self.voltage = voltage
        self.speed = 0.95 * voltage / NOMINAL_VOLTAGE
        self.flow = _settled_flow(self.speed, opening, SOUND)
        self.current: Quantity = 1.0
        self.motor, self.water = air + 14.0, air + 5.0

    def step(self, asked: Quantity, opening: Quantity, air: Quantity, fault: Fault) -> tuple[Quantity, ...]:
        """Advance one second at the requested motor voltage (V); return the sensors' values without noise."""
        self.voltage = self.voltage + (asked - self.voltage) / 3.0
        self.flow = self.flow + (_settled_flow(self.speed, opening, fault) - self.flow) / 2.0
        head = np.maximum(0.0, _lift(self.speed, fault) - _HEAD_LOSS * self.flow**2)
        hydraulic = _RHO_G * head * self.flow
        shaft = hydraulic / (_EFFICIENCY * (1 - 2 * fault.air)) + (_FRICTION + fault.friction) * self.speed**2
        self.speed = self.voltage / NOMINAL_VOLTAGE - _SLIP * shaft / _SHAFT_POWER
        resistance = (_RESISTANCE + fault.winding) * (1 + _COPPER * (self.motor - 20.0))
        self.current = (shaft + resistance * self.current**2) / (self.voltage * _COS_PHI)
        exchanged = _TO_WATER * (0.4 + self.flow / 1e-3) * (self.motor - self.water)
        lost, given_off = resistance * self.current**2 + (1 - _EFFICIENCY) * shaft, 1 - fault.fouling
        motor = (lost - given_off * _TO_AIR * (self.motor - air) - exchanged) / _HEAT_MOTOR
        water = (hydraulic + exchanged - given_off * _COOLER * (self.water - air)) / _HEAT_WATER
        self.motor, self.water = self.motor + motor, self.water + water
        suction_loss = _VALVE_IN / (opening * (1 - fault.valve2)) ** 2 * self.flow**2
        suction = _TANK_PRESSURE - _RHO_G * suction_loss
        cavitation = np.maximum(0.0, (_SUCTION_LIMIT - suction) / 1e5) * 0.6 + fault.air
        return (
            (_ACROSS + fault.unbalance) * self.speed**2 + 0.5 * cavitation,
            _ALONG * self.speed**2 + _TURBULENCE * self.flow**2 * self.flow + cavitation,
            self.current,
            (suction + _RHO_G * head) / 1e5,
            self.motor,
            self.water,
            self.voltage,
            self.flow * (1 - fault.leak) * 60_000.0,
        )


def _lift(speed: Quantity, fault: Fault) -> Quantity:
    """Return the pump's head without flow, m."""
    return _HEAD * (1 - fault.wear) * (1 - 2 * fault.air) * speed**2


def _settled_flow(speed: Quantity, opening: Quantity, fault: Fault) -> Quantity:
    """Return the flow at which the pump's head meets the loop's losses, m3/s."""
    valve_in, valve_out = opening * (1 - fault.valve2), opening * (1 - fault.valve1)
    losses = _HEAD_LOSS + _PIPE + _VALVE_IN / valve_in**2 + _VALVE_OUT / valve_out**2
    return np.sqrt(_lift(speed, fault) / losses)
