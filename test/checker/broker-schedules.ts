import { draw, type Setting } from '../../packages/check/src/playing/draw.js'
import type { BrokerName, Schedule } from '../../packages/check/src/playing/schedule.js'
import { THEMES, type Theme } from '../../packages/check/src/playing/themes.js'
import { BROKERS } from './brokers.js'

/**
 * The schedule of a seed.
 * @param theme A part of its name; default: the seed says which.
 */
export function drawSchedule(broker: BrokerName, seed: number, lengthMs: number, theme = ''): Schedule {
  const { nodeCount, log, startService } = BROKERS[broker]
  const setting: Setting = {
    broker,
    nodeCount,
    themes: themesFor(broker).filter(({ name }) => name.includes(theme)),
    partCount: broker === 'redis-cluster' ? 3 : startService === undefined ? 0 : 1,
    hasBrokerLinks: startService !== undefined && broker !== 'redis-cluster',
    ...(log === false ? { logged: 'none' } : {}),
  }
  return draw(setting, seed, lengthMs)
}

/** The themes that mean something with a broker. */
export function themesFor(broker: BrokerName): Theme[] {
  const { nodeCount, log, startService } = BROKERS[broker]
  const has = { broker: startService !== undefined, nodes: nodeCount > 1, log: log !== false }
  return THEMES.filter(({ needs }) => {
    if (needs === 'broker-log') return has.broker && has.log
    return needs === undefined || has[needs]
  })
}
