import type { FanOutWindow } from './fan-out.js'
import { per } from './trial-scenario.js'

/**
 * WSE's deliveries per CPU second of its servers and of Redis, measured with its own bench on a machine of 2 cores: by
 * the link between its nodes (tests 10 and 11) and by connections. Its cluster lost messages.
 */
const WSE_DELIVERIES_PER_CPU_SECOND: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  redis: { 10: 600_000, 100: 610_000, 1000: 540_000 },
  mesh: { 10: 870_000, 100: 750_000, 1000: 510_000 },
}

export function relayFigures({ counted, usage }: FanOutWindow, mode: string, subscribers: number) {
  const { serverCpuSeconds, brokerCpuSeconds } = usage
  const deliveriesPerTotalCpuSecond = per(counted.frames, (serverCpuSeconds ?? 0) + (brokerCpuSeconds ?? 0))
  const wse = WSE_DELIVERIES_PER_CPU_SECOND[mode]?.[subscribers]
  return {
    deliveriesPerTotalCpuSecond,
    wseRatio: wse === undefined || deliveriesPerTotalCpuSecond === null ? null : deliveriesPerTotalCpuSecond / wse,
  }
}

export const RELAY_NOTES: readonly string[] = [
  'Two nodes: A publishes in its own process, B has the connections. B tells A how many messages have left it, and A keeps at most --in-flight under way: brokers do not tell a publisher that a consumer is behind.',
  'Deliveries/CPU s is of both nodes, "with broker" of nodes and broker. WSE is the ratio of the latter to what WSE 2.4 (Redis: 1.4.4) reached with its own bench on a machine of 2 cores, where that is known.',
]
