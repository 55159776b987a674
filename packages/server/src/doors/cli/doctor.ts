import { Command } from 'commander'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { parseTimeMs, tokenOf } from './client/flags.js'
import { readTextFile, TOKEN_VARIABLE } from './option-sources.js'
import type { Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server doctor wss://example.com/ws
  webmq-server doctor wss://example.com/ws --origin https://app.example.com --token-file token.txt
  webmq-server doctor wss://example.com/ws --idle 90s   does a balancer cut idle connections?
  webmq-server doctor --production /etc/webmq           is what init has written still safe, and does it run so?

The exit code is 1 when a check fails.
`

interface DoctorFlags {
  readonly origin?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly ca?: string
  readonly admin?: string
  readonly idle?: number
  readonly timeout: number
  readonly json?: true
  readonly production?: true
  readonly killOne?: string | true
}

export function doctorCommand(terminal: Terminal, exit: (code: number) => void): Command {
  return new Command('doctor')
    .description('Examine the way to a server: DNS, TLS, proxies, origin, token, clocks.')
    .addHelpText('before', EXAMPLES)
    .argument('<url>', 'URL that clients use, such as wss://example.com/ws; with --production also the folder of init.')
    .option('--production', 'Examine an installation: its files, its programs, and what strangers may do.')
    .option(
      '--kill-one [command]',
      'With --production: kill one node, and tell what clients missed. You consent by it.',
    )
    .option('--origin <origin>', 'Check whether pages of this origin may connect.')
    .option(
      '--token <token>',
      `Check this token; it is sent over TLS or on this machine only. (env: ${TOKEN_VARIABLE})`,
    )
    .option('--token-file <file>', 'The same, read from a file.')
    .option('--ca <file>', 'PEM file with a private authority to trust.')
    .option('--admin <url>', 'Ask the admin port how the server is, such as http://127.0.0.1:9090; it tells more.')
    .option('--idle <time>', 'Keep a connection idle for this time, to see who cuts it.', parseTimeMs)
    .option('--timeout <time>', 'Time for each step.', parseTimeMs, 5_000)
    .option('--json', 'Print one JSON object per finding.')
    .action(async (text: string, flags: DoctorFlags) => {
      const { origin, ca, admin, idle, timeout, json = false } = flags
      const { parseOrigin, parseServerUrl } = await import('./doctor/target.js')
      const common = {
        timeoutMs: timeout,
        origin: origin === undefined ? undefined : parseOrigin(origin),
        token: tokenOf(flags, terminal.env)?.(),
        ca: ca === undefined ? undefined : readTextFile(ca, '--ca'),
        idleMs: idle,
      }
      if (flags.production === true) {
        const { examineProduction } = await import('./doctor/production.js')
        exit(await examineProduction(text, { json, killOne: flags.killOne }, common, terminal))
        return
      }
      if (flags.killOne !== undefined) throw invalidOption('--kill-one: only with --production')
      const target = { ...common, ...parseServerUrl(text) }
      const adminTarget = admin === undefined ? undefined : { ...target, ...parseServerUrl(admin), token: undefined }
      const { diagnose } = await import('./doctor/diagnose.js')
      exit(await diagnose({ ...target, admin: adminTarget }, json, terminal))
    })
}
