import { Command, InvalidArgumentError } from 'commander'
import { parseQuantity } from '../options/values.js'
import { addClientFlags, type ClientFlags, parseCount, parseTimeMs, targetOf } from './client/flags.js'
import type { SubscribeFlags } from './client/subscribe.js'
import { reportedByClient } from './exit-codes.js'
import type { Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server sub 'chat.#'                            messages of chat, one per line: key and payload
  webmq-server sub 'chat.#' 'news.*' --json | jq .key  one JSON object per message
  webmq-server sub 'prices.#' --state                  the present value of each key, then changes
  webmq-server sub orders.7 --last 10 --count 10 --timeout 5s
`

export function subCommand(terminal: Terminal, exit: (code: number) => void): Command {
  const command = new Command('sub')
    .description('Listen to patterns, and print their messages.')
    .addHelpText('before', EXAMPLES)
    .argument('<pattern...>', "Patterns such as 'chat.#'; quote them, as shells expand * and comment out #.")
    .option('--json', 'Print one JSON object per message, and one per gap.')
    .option('--state', 'Begin with the last message of each key that the server retains.')
    .option('--last <count>', 'Begin with this many of the newest messages in the log.', parseCount)
    .option('--since <position>', 'Begin after this position, as --json prints it.')
    .option('--rewind <time>', 'Begin with the messages of this time, such as 10m.', parseRewind)
    .option('-n, --count <count>', 'End after this many messages.', parseCount)
    .option(
      '--timeout <time>',
      'End after this time; with --count and too few messages, with exit code 5.',
      parseTimeMs,
    )
    .action(async (patterns: readonly string[], flags: ClientFlags & SubscribeFlags) => {
      const target = targetOf(flags, terminal.env)
      const { subscribe } = await import('./client/subscribe.js')
      exit(await reportedByClient(subscribe(patterns, target, flags, terminal), terminal))
    })
  return addClientFlags(command)
}

function parseRewind(text: string): number {
  const ms = parseQuantity(text, 'ms')
  if (ms !== undefined && ms > 0 && Number.isSafeInteger(ms)) return ms
  throw new InvalidArgumentError('It must be a time such as 10m.')
}
