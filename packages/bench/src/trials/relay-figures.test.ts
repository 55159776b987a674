import { expect, it } from 'vitest'
import type { FanOutWindow } from './fan-out.js'
import { relayFigures } from './relay-figures.js'

const windowOf = (brokerCpuSeconds: number | null) =>
  ({ counted: { frames: 12_000_000 }, usage: { serverCpuSeconds: 3, brokerCpuSeconds } }) as FanOutWindow

it.each([
  ['redis', 10, 1, { deliveriesPerTotalCpuSecond: 3_000_000, wseRatio: 5 }],
  ['mesh', 100, null, { deliveriesPerTotalCpuSecond: 4_000_000, wseRatio: 4_000_000 / 750_000 }],
  ['redis', 11, 1, { deliveriesPerTotalCpuSecond: 3_000_000, wseRatio: null }],
  ['nats', 10, 1, { deliveriesPerTotalCpuSecond: 3_000_000, wseRatio: null }],
])(
  'a delivery through %s to %d costs what nodes and broker have used',
  (mode, subscribers, brokerCpuSeconds, figures) => {
    expect(relayFigures(windowOf(brokerCpuSeconds), mode, subscribers)).toEqual(figures)
  },
)
