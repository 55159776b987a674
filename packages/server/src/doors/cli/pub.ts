import { Command } from 'commander'
import { addClientFlags, type ClientFlags, targetOf } from './client/flags.js'
import type { PublishFlags } from './client/publish.js'
import { reportedByClient } from './exit-codes.js'
import type { Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server pub chat.42 '{"text":"hello"}'
  webmq-server pub chat.42 hello                       the JSON string "hello"
  date | webmq-server pub clock.now - --text
  webmq-server pub images.7 --binary < photo.jpg
`

export function pubCommand(terminal: Terminal, exit: (code: number) => void): Command {
  const command = new Command('pub')
    .description('Publish a message, and wait until the broker has it.')
    .addHelpText('before', EXAMPLES)
    .argument('<key>', 'Key such as chat.42.')
    .argument('[payload]', 'JSON, or a text; - or nothing reads standard input.')
    .option('--text', 'Send the payload as a JSON string, whatever it contains.')
    .option('--binary', 'Send the bytes of the payload as they are.')
    .option('--id <id>', 'Id of the message: the server drops a second one with it.')
    .option('--json', 'Print the result as JSON.')
    .action(async (key: string, payload: string | undefined, flags: ClientFlags & PublishFlags) => {
      const target = targetOf(flags, terminal.env)
      const { publish } = await import('./client/publish.js')
      exit(await reportedByClient(publish(key, payload, target, flags, terminal), terminal))
    })
  return addClientFlags(command)
}
