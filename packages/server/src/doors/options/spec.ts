interface OptionBase {
  /** Name in `ServerOptions` and in the config file; `jwt.secret` stands for `{ jwt: { secret } }`. */
  readonly name: string
  /** Heading in `--help` and in the documentation. */
  readonly section: string
  /** Long flag without dashes. {@link environmentNameOf} derives the environment variable from it. */
  readonly flag: string
  readonly shortFlag?: string
  /** A server takes a new value while it runs, from `reload` or SIGHUP. Otherwise the next start takes it. */
  readonly reloadable?: true
  /** One sentence about what the option does, for `--help` and the documentation. Markdown. */
  readonly help: string
  /** The failure that the option prevents, and other facts; for the documentation. Markdown. */
  readonly detail?: string
}

/** A whole number, optionally with a unit. */
export interface IntegerOption extends OptionBase {
  readonly type: 'integer'
  readonly unit?: 'bytes' | 'ms' | 's'
  readonly range: readonly [min: number, max: number]
  /** Absent: without a value, the option is off. */
  readonly default?: number | (() => number)
  /** Shown instead of a default that is absent or depends on the machine. */
  readonly defaultText?: string
}

export interface TextOption extends OptionBase {
  readonly type: 'text'
  readonly default?: string
  /** Name of the value in `--help`. */
  readonly placeholder: string
  /** Never printed, logged or repeated in an error. */
  readonly isSecret?: boolean
  /** Removes the secret part of a value, for output, logs and errors. */
  readonly shown?: (value: string) => string
  /**
   * How the command line, the environment and the config file may name a file instead. `file-flag` adds `--<flag>-file`
   * and `WEBMQ_<FLAG>_FILE`.
   */
  readonly fromFile?: 'file-flag'
  /** Describes the allowed values when this one is not allowed; `undefined` when it is. */
  readonly check?: (value: string) => string | undefined
}

export interface ChoiceOption<Choice extends string = string> extends OptionBase {
  readonly type: 'choice'
  readonly choices: readonly Choice[]
  readonly default: NoInfer<Choice>
}

/** A list of texts. The flag may be repeated; one text may hold several entries with a separator. */
export interface ListOption extends OptionBase {
  readonly type: 'list'
  /** Separator of entries in one text, as in an environment variable; default `,`. `none`: one text is one entry. */
  readonly separator?: string
  readonly placeholder: string
  /** Entries are never printed, logged or repeated in an error. */
  readonly isSecret?: boolean
  /**
   * `file-flag` adds `--<flag>-file` and `WEBMQ_<FLAG>_FILE`; commas separate the names of several files. A file has one
   * entry per line, or is one entry where `separator` is `none`. `pem` treats an entry that does not start like PEM text
   * as a file name.
   */
  readonly fromFile?: 'file-flag' | 'pem'
  /** Most entries; default: no limit. The empty list is then refused: it usually means that a value was lost. */
  readonly maxCount?: number
  /** A text in a program or in the config file is a list with this one entry, separators included. */
  readonly takesText?: true
  /** Shown as the default, `none` if absent; the default itself is the empty list. */
  readonly defaultText?: string
  /** Describes the allowed entries when this one is not allowed; `undefined` when it is. */
  readonly check: (value: string) => string | undefined
}

/** Off by default. */
export interface SwitchOption extends OptionBase {
  readonly type: 'switch'
}

/** One option of the server, with everything that `--help`, the sources, validation and the documentation need. */
export type OptionSpec = IntegerOption | TextOption | ChoiceOption | ListOption | SwitchOption

export type OptionValue = number | string | boolean | readonly string[]

/** A spec as it stands in the table. */
export type RowOf<Spec extends OptionBase> = Omit<Spec, 'name' | 'section' | 'flag'> & { readonly flag?: string }

/** A row of the table. Its flag is its name with dashes and without the unit, and its unit ends the name, unless it says otherwise. */
export type Row =
  | RowOf<IntegerOption>
  | RowOf<TextOption>
  | RowOf<ChoiceOption>
  | RowOf<ListOption>
  | RowOf<SwitchOption>

type Facts<Spec extends OptionBase> = Omit<RowOf<Spec>, 'type'>

export const integer = (facts: Facts<IntegerOption>): RowOf<IntegerOption> => ({ type: 'integer', ...facts })
export const text = (facts: Facts<TextOption>): RowOf<TextOption> => ({ type: 'text', ...facts })
export const list = (facts: Facts<ListOption>): RowOf<ListOption> => ({ type: 'list', ...facts })
export const toggle = (facts: Facts<SwitchOption>): RowOf<SwitchOption> => ({ type: 'switch', ...facts })
export const choice = <const Choice extends string>(facts: Facts<ChoiceOption<Choice>>) =>
  ({ type: 'choice', ...facts }) as const

/** Units by the ends of names. */
const UNITS = { Ms: 'ms', Bytes: 'bytes', S: 's' } as const

/** A row with its name, its section, and what these say. */
export function specOf<Name extends string>(
  name: Name,
  section: string,
  row: Row,
): OptionSpec & { readonly name: Name } {
  const [, stem = name, end] = /^(.*[a-z])(Ms|Bytes|S)$/.exec(name) ?? []
  const flag = stem.replaceAll('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const unit = row.type === 'integer' && end !== undefined ? { unit: UNITS[end as keyof typeof UNITS] } : {}
  return { name, section, flag, ...unit, ...row }
}

/** Splits `jwt.secret` into `jwt` and `secret`. */
export function splitName(name: string): readonly [string, string | undefined] {
  const dot = name.indexOf('.')
  return dot < 0 ? [name, undefined] : [name.slice(0, dot), name.slice(dot + 1)]
}

export function optionValue(options: object, name: string): unknown {
  const [group, member] = splitName(name)
  const value = (options as Readonly<Record<string, unknown>>)[group]
  return member === undefined ? value : (value as Readonly<Record<string, unknown>> | undefined)?.[member]
}

/** Sets the value of an option in such an object. A group is copied, as it may be shared. */
export function setOption(options: Record<string, unknown>, name: string, value: unknown): void {
  const [group, member] = splitName(name)
  options[group] = member === undefined ? value : { ...(options[group] as object | undefined), [member]: value }
}

/** What may be shown of a value; `undefined` when it is secret as a whole. */
export function shownValue(spec: OptionSpec, value: unknown): unknown {
  if ('isSecret' in spec && spec.isSecret === true) return undefined
  return typeof value === 'string' && spec.type === 'text' && spec.shown !== undefined ? spec.shown(value) : value
}

/** Environment variable of an option: `--max-payload` is `WEBMQ_MAX_PAYLOAD`. */
export function environmentNameOf(spec: OptionSpec): string {
  return `WEBMQ_${spec.flag.toUpperCase().replaceAll('-', '_')}`
}

/** The value of an option that no source sets; `undefined` when the option is then absent. */
export function defaultOf(spec: OptionSpec): OptionValue | undefined {
  if (spec.type === 'switch') return false
  if (spec.type === 'list') return spec.maxCount === undefined ? [] : undefined
  return typeof spec.default === 'function' ? spec.default() : spec.default
}

/** The default in words, for `--help` and the documentation; `undefined` when the option is then absent. */
export function describeDefault(spec: OptionSpec): string | undefined {
  if (spec.type === 'list') return spec.maxCount === undefined ? (spec.defaultText ?? 'none') : undefined
  if (spec.type === 'switch') return 'off'
  if (spec.type !== 'integer') return spec.default
  return spec.defaultText ?? formatQuantity(Number(defaultOf(spec)), spec.unit)
}

/** Writes a number with the largest unit that divides it: `256KiB`, `25s`. */
export function formatQuantity(value: number, unit: IntegerOption['unit']): string {
  const scale = Object.entries(unit === undefined ? {} : SCALES[unit])
  const [suffix, factor] = scale.find(([, factor]) => value !== 0 && value % factor === 0) ?? []
  if (factor !== undefined) return `${value / factor}${suffix}`
  // `toLocaleString` would take 4 MB of ICU's tables into memory, at each start.
  return value >= 10_000 ? String(value).replaceAll(/\B(?=(?:\d{3})+$)/g, ',') : String(value)
}

/** Suffixes of quantities, largest first, and what they multiply by. */
export const SCALES: Readonly<Record<'bytes' | 'ms' | 's', Readonly<Record<string, number>>>> = {
  bytes: { GiB: 1024 ** 3, MiB: 1024 ** 2, KiB: 1024 },
  ms: { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 },
  s: { d: 86_400, h: 3600, m: 60, s: 1 },
}
