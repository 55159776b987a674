import { parseArgs } from 'node:util'
import { brokersOf, numberOf, secondsOf } from '../play-options.js'

export const BROKER_NAMES = ['memory', 'redis', 'nats', 'rabbitmq'] as const
export type BrokerName = (typeof BROKER_NAMES)[number]

export interface TrafficOptions {
  readonly brokers: readonly BrokerName[]
  readonly seconds: number
  /** Without traffic, before memory is compared. */
  readonly quietSeconds: number
  /** Actions of each broker. */
  readonly perSecond: number
  readonly seed: number
  readonly isHostile: boolean
  /** Rows of a database for one of the brokers. */
  readonly hasOutbox: boolean
}

export const USAGE = `npm run test:doors -- [options]

Random traffic through all doors of real nodes, odd texts among it. Ends with 1 when a node ends, answers with a bug, logs an
error, keeps memory, or gives back another stream than its only writer wrote.

  --minutes <number>     Default: 60.
  --seconds <number>     In place of minutes.
  --quiet <seconds>      Without traffic, before memory is compared. Default: 30.
  --broker <name,…>      ${BROKER_NAMES.join(', ')}, side by side. Default: all.
  --rate <number>        Actions per second and broker. Default: 15.
  --seed <number>        Default: by the clock. It repeats what each actor draws, not how they meet.
  --honest               Without odd texts.
  --no-outbox            Without PostgreSQL.
`

/** @throws {Error} for what it does not know. */
export function readOptions(args: readonly string[]): TrafficOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '60' },
      seconds: { type: 'string' },
      quiet: { type: 'string', default: '30' },
      broker: { type: 'string', default: BROKER_NAMES.join(',') },
      rate: { type: 'string', default: '15' },
      seed: { type: 'string' },
      honest: { type: 'boolean', default: false },
      'no-outbox': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  return {
    brokers: brokersOf(values.broker, BROKER_NAMES),
    seconds: secondsOf(values),
    quietSeconds: numberOf('quiet', values.quiet),
    perSecond: numberOf('rate', values.rate),
    seed: values.seed === undefined ? Date.now() % 1_000_000 : numberOf('seed', values.seed),
    isHostile: !values.honest,
    hasOutbox: !values['no-outbox'],
  }
}
