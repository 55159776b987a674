import { type Command, InvalidArgumentError, Option } from 'commander'
import { BROKER_KINDS, type BrokerKind } from '../../brokers/broker-choice.js'
import { nonNegativeNumber, positiveInteger, positiveNumber } from '../../options.js'
import { DEFAULT_DURATION_S, DEFAULT_WARMUP_S } from '../clients/options.js'

/** The flag that names the brokers of a table. */
export function brokersOption(defaults: readonly BrokerKind[]): Option {
  return new Option('--brokers <names>', `brokers, taking turns: ${BROKER_KINDS.join(', ')}`)
    .argParser(brokerKinds)
    .default(defaults)
}

/** Adds the flags of a table of runs of `clients`. */
export function addRunsOptions(command: Command): void {
  command
    .option('--repeat <n>', 'runs of each; the table shows medians', positiveInteger, 3)
    .option('--duration <s>', 'seconds to publish', positiveNumber, DEFAULT_DURATION_S)
    .option('--warmup <s>', 'seconds of the same traffic before, not counted', nonNegativeNumber, DEFAULT_WARMUP_S)
    .option('--out <folder>', 'keep the JSON and the text of every single run there')
}

/** Reads `rabbitmq,redis`. */
function brokerKinds(text: string): BrokerKind[] {
  return text.split(',').map((name) => {
    const kind = BROKER_KINDS.find((known) => known === name.trim())
    if (kind === undefined) throw new InvalidArgumentError(`Allowed are ${BROKER_KINDS.join(', ')}.`)
    return kind
  })
}
