import { type Command, Help, type HelpConfiguration, type Option } from 'commander'
import { describeDefault, type OptionSpec } from '../options/spec.js'
import { OPTIONS, type OptionName } from '../options/table.js'
import { fileFlagOf } from './option-flags.js'

/** A longer flag stands on a line of its own, so that a few leave room for the descriptions of all. */
const MAX_FLAG_CHARS = 31

export const NARROW: HelpConfiguration = {
  padWidth(this: Help, command, helper) {
    return Math.min(Help.prototype.padWidth.call(this, command, helper), MAX_FLAG_CHARS)
  },
  formatItem(this: Help, term, width, description, helper) {
    const format = (text: string) => Help.prototype.formatItem.call(this, text, width, description, helper)
    return term.length <= width ? format(term) : `  ${term}\n${format('')}`
  },
}

/** `--help-all`: it also lists the options of `serve`, because most users omit that command. */
export class WholeHelp extends Help {
  readonly #serve: Command

  constructor(serve: Command) {
    super()
    this.#serve = serve
  }

  override visibleOptions(command: Command): ReturnType<Help['visibleOptions']> {
    const own = super.visibleOptions(command)
    if (command === this.#serve) return own
    return [...super.visibleOptions(this.#serve).filter((option) => option.long !== '--help'), ...own]
  }
}

/** Options of the first page, in its order. */
const COMMON: readonly OptionName[] = [
  'port',
  'host',
  'demo',
  'broker',
  'origins',
  'insecure',
  'jwt.secret',
  'jwt.jwksUrl',
  'history',
  'apiKeys',
  'adminPort',
  'tls.certFile',
  'logLevel',
]

const EXAMPLES = `Examples:
  webmq-server --demo                    this machine only, with a demo page
  webmq-server --host 0.0.0.0 --jwt-secret-file /run/secrets/webmq
  webmq-server sub 'chat.#'              what is published there; pub publishes
`

const ALL = 'All options: webmq-server --help-all\n'

/** `--help`: the commands, and the options of `serve` that most users need; a line each, on one page. */
export class ShortHelp extends Help {
  readonly #serve: Command

  constructor(serve: Command) {
    super()
    this.#serve = serve
  }

  override formatHelp(command: Command, helper: Help): string {
    const isServe = command === this.#serve
    const commands = isServe ? [] : this.visibleCommands(command)
    const own = super.visibleOptions(command).filter((option) => !this.#serve.options.includes(option))
    const rows = {
      Commands: commands.map((sub) => [termOf(sub), briefly(sub.description(), /[:;]/)] as const),
      [isServe ? 'Options, those that most need' : 'Options of serve, those that most need']: [
        ...COMMON.map((name) => this.#rowOf(name)),
        ...[...this.#serve.options.filter(({ long }) => long === '--config'), ...own].map(
          (option) => [this.optionTerm(option), this.optionDescription(option)] as const,
        ),
      ],
    }
    const width = Math.max(...Object.values(rows).flatMap((each) => each.map(([term]) => term.length)))
    const lists = Object.entries(rows).flatMap(([title, each]) =>
      each.length === 0
        ? []
        : [helper.styleTitle(`${title}:`), ...each.map((row) => helper.formatItem(row[0], width, row[1], helper)), ''],
    )
    return `${helper.styleTitle('Usage:')} ${this.commandUsage(command)}\n\n${lists.join('\n')}\n${isServe ? ALL : EXAMPLES}`
  }

  #rowOf(name: OptionName): readonly [string, string] {
    const spec: OptionSpec | undefined = OPTIONS.find((each) => each.name === name)
    const isInFile = spec !== undefined && 'isSecret' in spec && spec.isSecret === true
    const long = spec && (isInFile ? fileFlagOf(spec) : `--${spec.flag}`)
    const option: Option | undefined = this.#serve.options.find((each) => each.long === long)
    if (spec === undefined || option === undefined) throw new Error(`${name} is no option`)
    const fallback = spec.type === 'switch' || spec.type === 'list' ? undefined : describeDefault(spec)
    const note = fallback === undefined || fallback === 'none' ? '' : ` (default: ${fallback})`
    return [this.optionTerm(option), `${briefly(spec.help, /[:;,]| \(/)}${note}`]
  }
}

/** `sub <patterns...>`, `token <command>`. */
function termOf(command: Command): string {
  const args = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`
    return argument.required ? `<${name}>` : `[${name}]`
  })
  return [command.name(), ...(command.commands.length > 0 ? ['<command>'] : args)].join(' ')
}

/** The first statement of a text. */
function briefly(text: string, end: RegExp): string {
  return (text.replaceAll('`', '').split(end)[0] ?? '').replace(/\.$/, '')
}
