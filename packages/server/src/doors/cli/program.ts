import { styleText } from 'node:util'
import { Command } from 'commander'
import { closestName, DOCS_URL, didYouMean } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { VERSION } from '../../kernel/node/version.js'
import type { OptionSpec } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { completionCommand } from './completion.js'
import { addFlagsOfOptions, configCommands } from './config.js'
import { doctorCommand } from './doctor.js'
import { leaveSignals } from './early-signals.js'
import { explainCommand } from './explain.js'
import { NARROW, ShortHelp, WholeHelp } from './help.js'
import { initCommand } from './init.js'
import { addOptionFlags, exposedSecrets, readSources } from './option-flags.js'
import { optionsNamed } from './option-sources.js'
import { pubCommand } from './pub.js'
import { serve } from './serve.js'
import { subCommand } from './sub.js'
import { type Terminal, usesColor } from './terminal.js'
import { tokenCreateCommand } from './token-create.js'
import { tokenInspectCommand } from './token-inspect.js'
import { topCommand } from './top.js'

const EXAMPLES = `Examples:
  webmq-server                                        this machine only, no tokens, no broker to install
  webmq-server --demo                                 the same, with a demo page
  webmq-server -p 9000 --origin http://localhost:5173 allow pages of a development server
  webmq-server --host 0.0.0.0 --jwt-secret-file /run/secrets/webmq --log-level warn
  webmq-server --host 0.0.0.0 --jwks https://id.example.com/.well-known/jwks.json --audience webmq
  WEBMQ_PORT=9000 WEBMQ_MAX_PAYLOAD=64KiB webmq-server --config webmq.json
  webmq-server sub 'chat.#'                           what is published there; pub publishes
  webmq-server token create --grant 'chat.#:listen,publish' --user alice --jwt-secret-file secret.txt
`

const MORE = `
Flags override the environment, the environment overrides the config file, the file overrides the defaults.
Sizes accept units such as 64KiB, times such as 10s. All options in detail: ${DOCS_URL}configuration.md
`

const UNKNOWN_FLAG = /unknown option '--([^'=]+)/

/**
 * The command line: `serve` (the default), clients (`sub`, `pub`, `top`, `doctor`), `token …`, `config …`, `explain`,
 * `completion`.
 *
 * @param exit Gets the exit code of the command.
 */
export function createProgram(terminal: Terminal, exit: (code: number) => void): Command {
  const program = new Command('webmq-server')
    .description('Message-broker topics in the browser: the WebMQ server.')
    .usage('[command] [options]')
    .version(VERSION, '-v, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print the help of a command.')
    .option('--help-all', `Print all ${OPTIONS.length} options of the server.`)
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      getOutHelpWidth: () => terminal.stdout.columns,
      getErrHelpWidth: () => terminal.stderr.columns,
      getOutHasColors: () => usesColor(terminal.stdout, terminal.env),
      getErrHasColors: () => usesColor(terminal.stderr, terminal.env),
    })
    .configureHelp({ ...NARROW, styleTitle: (title) => styleText('bold', title, { validateStream: false }) })
    .exitOverride()

  const serveCommand = program
    .command('serve', { isDefault: true })
    .description('Run the server (the default).')
    .allowExcessArguments()
    .option('--pid-file <file>', 'Write the number of the process into this file while the server listens.')
    .action(async ({ pidFile }: { readonly pidFile?: string }, command: Command) => {
      rejectUnknownCommand(command)
      const { env } = terminal
      const exposed = () => exposedSecrets(command, OPTIONS, env)
      exit(await serve((record) => readSources(command, OPTIONS, env, record), terminal, pidFile, exposed))
    })
    .configureOutput({ ...program.configureOutput(), outputError: (text, write) => write(withFlagOfOption(text)) })
  addOptionFlags(serveCommand, OPTIONS)
  program.hook('preAction', (_program, command) => {
    if (command !== serveCommand) leaveSignals()
  })
  let isWhole = false
  program.on('option:help-all', () => {
    isWhole = true
    program.help()
  })
  program.addHelpText('before', () => (isWhole ? EXAMPLES : '')).addHelpText('after', () => (isWhole ? MORE : ''))
  program.createHelp = () =>
    Object.assign(isWhole ? new WholeHelp(serveCommand) : new ShortHelp(serveCommand), program.configureHelp())
  serveCommand.createHelp = () => Object.assign(new ShortHelp(serveCommand), program.configureHelp())

  const token = program.command('token').description('Create and inspect tokens.').helpCommand(false)
  token.addCommand(inherit(tokenCreateCommand(terminal, optionsNamed('jwt.')), program))
  token.addCommand(inherit(tokenInspectCommand(terminal, optionsNamed('jwt.'), exit), program))

  const outbox = program.command('outbox').description('Print what the database of --outbox needs.').helpCommand(false)
  outbox
    .command('schema')
    .description('Print the SQL that creates the table of --outbox; it changes no table that exists.')
    .addHelpText('before', "Example:\n  webmq-server outbox schema | psql 'postgres://admin@db.example/app'\n")
    .action(async () => {
      const { loadOutboxDriver } = await import('../../features/outbox/packaged.js')
      terminal.stdout.write((await loadOutboxDriver()).schema)
    })

  const others = [
    subCommand(terminal, exit),
    pubCommand(terminal, exit),
    topCommand(terminal, exit),
    doctorCommand(terminal, exit),
    initCommand(terminal),
    explainCommand(terminal),
    completionCommand(terminal, () => program),
  ]
  for (const command of others) {
    program.addCommand(inherit(command, program))
  }

  const config = program.command('config').description('Write, check and show the configuration.').helpCommand(false)
  config.hook('preSubcommand', (_config, command) => addFlagsOfOptions(command))
  for (const command of configCommands(terminal, exit)) config.addCommand(inherit(command, program))
  return program
}

function inherit(command: Command, parent: Command): Command {
  const inherited = command.copyInheritedSettings(parent)
  return inherited.configureOutput({
    ...parent.configureOutput(),
    outputError: (text, write) => write(withOwnFlag(text, inherited)),
  })
}

/** Suggests a flag of the command itself: commander knows those of `serve`, its parent's, as well. */
function withOwnFlag(text: string, command: Command): string {
  const [, given] = UNKNOWN_FLAG.exec(text) ?? []
  if (given === undefined) return text
  const closest = closestName(
    given,
    command.options.flatMap(({ long }) => long?.slice(2) ?? []),
  )
  return `error: unknown option '--${given}'\n${closest === undefined ? '' : `(Did you mean --${closest}?)\n`}`
}

/** Suggests the flag of an option for its name: `--max-payload` for `--max-payload-bytes`. Otherwise commander's own comes first. */
function withFlagOfOption(text: string): string {
  const [, given] = UNKNOWN_FLAG.exec(text) ?? []
  if (given === undefined) return text
  const isNamed = ({ name }: OptionSpec) => name.replace(/\.|(?=[A-Z])/g, '-').toLowerCase() === given
  const closest = text.includes('Did you mean')
    ? undefined
    : closestName(
        given,
        OPTIONS.flatMap(({ name, flag }) => [flag, name]),
      )
  const spec = OPTIONS.find(isNamed) ?? OPTIONS.find(({ name, flag }) => name === closest || flag === closest)
  return spec === undefined ? text : `error: unknown option '--${given}'\n(Did you mean --${spec.flag}?)\n`
}

/** What the clients and the protocol call it. */
const COMMANDS_MEANT: Readonly<Record<string, string>> = { publish: 'pub', listen: 'sub', subscribe: 'sub' }

/** Unknown commands reach `serve` as arguments. */
function rejectUnknownCommand(command: Command): void {
  const [name] = command.args
  if (name === undefined) return
  const names = command.parent?.commands.map((sibling) => sibling.name()) ?? []
  const hint = Object.hasOwn(COMMANDS_MEANT, name) ? `, did you mean ${COMMANDS_MEANT[name]}?` : didYouMean(name, names)
  throw invalidOption(`${name}: unknown command${hint}`)
}
