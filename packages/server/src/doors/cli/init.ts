import { Command, Option } from 'commander'
import type { InitFlags } from './init/values.js'
import { collect } from './option-flags.js'
import type { Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server init systemd /etc/webmq --host chat.example.org
  webmq-server init compose ./webmq --host chat.example.org --alerts https://hooks.example.org/alerts
  webmq-server init helm ./webmq --host chat.example.org --broker nats --image registry.example.org/webmq
`

export function initCommand(terminal: Terminal): Command {
  return new Command('init')
    .description(
      'Write a folder that runs in production: three nodes, broker, TLS, secrets, monitoring; and why each line is there.',
    )
    .addHelpText('before', EXAMPLES)
    .argument('<kind>', 'compose, systemd or helm.')
    .argument('[folder]', 'Where to write it.', 'webmq')
    .requiredOption('--host <name>', 'Name under which browsers reach the server.')
    .addOption(new Option('--broker <name>', 'Broker between the nodes: redis, nats or rabbitmq.').default('redis'))
    .option('--origin <origin>', 'Pages that may connect. (may be repeated, default: https:// and the host)', collect)
    .option(
      '--cert <file>',
      'Certificate chain, PEM; it is copied. Without one the proxy obtains it from an authority.',
    )
    .option('--key <file>', 'Its private key.')
    .option('--alerts <url>', 'Webhook that Alertmanager calls.')
    .option('--traces <url>', 'Collector of OpenTelemetry that takes OTLP over HTTP.')
    .option('--image <name>', 'helm: image in your registry.')
    .option('--force', 'Replace files that are there. Secrets stay.')
    .action(async (kind: string, folder: string, flags: InitFlags) => {
      const { writeFolder } = await import('./init/folder.js')
      writeFolder(kind, folder, flags, terminal)
    })
}
