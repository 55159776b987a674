import { Command } from 'commander'
import { validateKey } from 'webmq-client/protocol'
import { namespaceOf, partitionOfKey } from '../ports/partition-of.js'
import { addOptionFlags, readSources } from './option-flags.js'
import { optionsNamed } from './option-sources.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server partition room.42.message --history-partitions 16 --history-partition-words 2
`

/** `partition`: where a program publishes that does not publish through WebMQ. */
export function partitionCommand(terminal: Terminal): Command {
  const specs = ['historyPartitions', 'historyPartitionWords', 'brokerNamespace'].flatMap(optionsNamed)
  const command = new Command('partition')
    .description('Show the partition of the log that a key has, and its namespace at the broker.')
    .addHelpText('before', EXAMPLES)
    .argument('<key>', 'The key of a message.')
    .option('--json', 'Print JSON.')
    .action((key: string, flags: { json?: boolean }, self: Command) => {
      validateKey(key)
      const options = readSources(self, specs, terminal.env)
      const { historyPartitions: count = 1, historyPartitionWords: words = 1, brokerNamespace = 'webmq' } = options
      const partition = partitionOfKey(key, { count, words })
      const namespace = count === 1 ? brokerNamespace : namespaceOf(brokerNamespace, partition, count)
      const text = `${printable(key)} is in partition ${partition} of ${count}, in the namespace ${namespace}`
      terminal.stdout.write(`${flags.json === true ? JSON.stringify({ key, partition, count, namespace }) : text}\n`)
    })
  addOptionFlags(command, specs)
  return command
}
