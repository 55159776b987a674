import { parseArgs } from 'node:util'
import { brokersOf, numberOf, secondsOf } from '../play-options.js'

export const BROKER_NAMES = ['memory', 'redis', 'nats', 'rabbitmq', 'mesh'] as const
export type BrokerName = (typeof BROKER_NAMES)[number]

export interface ChurnOptions {
  readonly brokers: readonly BrokerName[]
  /** Of each broker. */
  readonly seconds: number
  /** Without load, before anything is compared. */
  readonly restSeconds: number
  readonly actorCount: number
}

export const USAGE = `npm run test:churn -- [options]

Connections, listens, queue groups, presence, requests and streams come and go, each with a name of its own, at three nodes with
each broker, one broker after the other. Then all rests. Ends with 1 when anything is left at the nodes or at the broker that
was not there before: gauges, heap, RSS, keys, channels, queues, bindings, consumers, connections.

  --minutes <number>     Of each broker. Default: 15.
  --seconds <number>     In place of minutes.
  --rest <seconds>       Without load, before anything is compared. Default: 90. A stream that nobody uses stays for 60.
  --broker <name,…>      ${BROKER_NAMES.join(', ')}. Default: all.
  --actors <number>      Who acts at the same time. Default: 12.
`

/** @throws {Error} for what it does not know. */
export function readOptions(args: readonly string[]): ChurnOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '15' },
      seconds: { type: 'string' },
      rest: { type: 'string', default: '90' },
      broker: { type: 'string', default: BROKER_NAMES.join(',') },
      actors: { type: 'string', default: '12' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  return {
    brokers: brokersOf(values.broker, BROKER_NAMES),
    seconds: secondsOf(values),
    restSeconds: numberOf('rest', values.rest),
    actorCount: numberOf('actors', values.actors),
  }
}
