import { Command, Option } from 'commander'
import { parseCount, parseTimeMs } from './client/flags.js'
import { reportedByClient } from './exit-codes.js'
import type { Terminal } from './terminal.js'
import { NODE_ORDERS, type WatchFlags } from './top/flags.js'

const EXAMPLES = `Examples:
  webmq-server top --api-key-file key.txt                    the server of this machine
  WEBMQ_API_KEY_FILE=key.txt webmq-server top https://example.com --once
  webmq-server top http://127.0.0.1:9090 --api-key-file key.txt --json | jq .nodes  the admin port
`

interface TopFlags extends WatchFlags {
  readonly apiKey?: string
  readonly apiKeyFile?: string
}

export function topCommand(terminal: Terminal, exit: (code: number) => void): Command {
  return new Command('top')
    .description('Watch a server live: rates, connections, slow consumers and the busiest patterns.')
    .addHelpText('before', EXAMPLES)
    .argument('[url]', 'Address of the server or of its admin port.', 'http://127.0.0.1:8080')
    .option('--api-key <key>', 'Key of the HTTP API; every user of this machine can see flags. (env: WEBMQ_API_KEY)')
    .option('--api-key-file <file>', 'The same, read from a file. (env: WEBMQ_API_KEY_FILE)')
    .option('--interval <time>', 'Time between two looks.', parseTimeMs, 2_000)
    .option('--patterns <count>', 'Patterns to show.', parseCount, 15)
    .addOption(new Option('--sort <column>', 'Order of the nodes.').choices(NODE_ORDERS).default('connections'))
    .option('--once', 'Look once; so it is when the output is not a terminal and not JSON.')
    .option('--json', 'Print one JSON object per look.')
    .action(async (url: string, flags: TopFlags) => {
      const { apiSourceOf } = await import('./top/snapshot.js')
      const { watch } = await import('./top/watch.js')
      exit(await reportedByClient(watch(apiSourceOf(url, flags, terminal), flags, terminal), terminal))
    })
}
