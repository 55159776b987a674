/** Headings under which options are listed in `--help` and in the documentation, in this order. */
export const OPTION_SECTIONS = [
  'Address',
  'Engine',
  'Limits',
  'Time limits',
  'History',
  'Presence',
  'Security',
  'Tokens',
  'Logging and metrics',
] as const

/** One heading of {@link OPTION_SECTIONS}. */
export type OptionSection = (typeof OPTION_SECTIONS)[number]

interface OptionBase {
  /** Name in `ServerOptions` and in the config file; `jwt.secret` stands for `{ jwt: { secret } }`. */
  readonly name: string
  readonly section: OptionSection
  /** Long flag without dashes; the environment variable is derived from it, see {@link environmentNameOf}. */
  readonly flag: string
  readonly shortFlag?: string
  /** What the option does, in one sentence, for `--help` and the documentation. Markdown. */
  readonly help: string
  /** The failure that it prevents, and what else there is to know; for the documentation. Markdown. */
  readonly detail?: string
}

/** A whole number, with a unit where it has one. */
export interface IntegerOption extends OptionBase {
  readonly type: 'integer'
  readonly unit?: 'bytes' | 'ms' | 's'
  readonly min: number
  readonly max: number
  readonly default: number | (() => number)
  /** Shown instead of a default that depends on the machine. */
  readonly defaultText?: string
}

/** One line of text. */
export interface TextOption extends OptionBase {
  readonly type: 'text'
  readonly default?: string
  /** Stands for the value in `--help`. */
  readonly placeholder: string
  /** Never printed, logged or repeated in an error. */
  readonly isSecret?: boolean
  /** Gives what may be printed, logged and repeated in an error of a value that holds a secret. */
  readonly shown?: (value: string) => string
  /**
   * How the command line and the environment may name a file instead: `file-flag` adds `--<flag>-file` and
   * `WEBMQ_<FLAG>_FILE`; `pem` takes a value that does not start like PEM text as the name of a file.
   */
  readonly fromFile?: 'file-flag' | 'pem'
  /** Says what is allowed when the value is not; `undefined` when it is. */
  readonly check?: (value: string) => string | undefined
}

/** One of a few words. */
export interface ChoiceOption extends OptionBase {
  readonly type: 'choice'
  readonly choices: readonly string[]
  readonly default: string
}

/** A list of texts: the flag may be repeated, and within one text entries are separated. */
export interface ListOption extends OptionBase {
  readonly type: 'list'
  /** What stands between entries of one text, as in an environment variable; default `,`. */
  readonly separator?: string
  readonly placeholder: string
  /** Shown as the default; the default itself is the empty list. */
  readonly defaultText: string
  /** Says what is allowed when one entry is not; `undefined` when it is. */
  readonly check: (value: string) => string | undefined
}

/** Off unless asked for. */
export interface SwitchOption extends OptionBase {
  readonly type: 'switch'
  readonly default: false
}

/** One option of the server: everything that `--help`, the sources, the validation and the documentation need to know. */
export type OptionSpec = IntegerOption | TextOption | ChoiceOption | ListOption | SwitchOption

/** A value as a source gave it, of the type that the option wants. */
export type OptionValue = number | string | boolean | readonly string[]

/** Environment variable of an option: `--max-payload` is `WEBMQ_MAX_PAYLOAD`. */
export function environmentNameOf(spec: OptionSpec): string {
  return `WEBMQ_${spec.flag.toUpperCase().replaceAll('-', '_')}`
}

/** The value that an option has when no source gives one; `undefined` when it is then absent. */
export function defaultOf(spec: OptionSpec): OptionValue | undefined {
  if (spec.type === 'list') return []
  return typeof spec.default === 'function' ? spec.default() : spec.default
}

/** The default in words, for `--help` and the documentation; `undefined` when the option is then absent. */
export function describeDefault(spec: OptionSpec): string | undefined {
  if (spec.type === 'list') return spec.defaultText
  if (spec.type === 'switch') return 'off'
  if (spec.type !== 'integer') return spec.default
  return spec.defaultText ?? formatQuantity(Number(defaultOf(spec)), spec.unit)
}

/** A number with its unit, as it may be typed: `256KiB`, `25s`; a number that no larger unit divides stays as it is. */
export function formatQuantity(value: number, unit: IntegerOption['unit']): string {
  const scale = unit === undefined ? [] : (SCALES[unit] ?? [])
  const fit = scale.find(({ factor }) => value !== 0 && value % factor === 0)
  if (fit !== undefined) return `${value / fit.factor}${fit.suffix}`
  return value >= 10_000 ? value.toLocaleString('en-US') : String(value)
}

/** Suffixes that a quantity is written with, largest first. */
const SCALES = {
  bytes: [
    { suffix: 'GiB', factor: 1024 ** 3 },
    { suffix: 'MiB', factor: 1024 ** 2 },
    { suffix: 'KiB', factor: 1024 },
  ],
  ms: [
    { suffix: 'd', factor: 86_400_000 },
    { suffix: 'h', factor: 3_600_000 },
    { suffix: 'm', factor: 60_000 },
    { suffix: 's', factor: 1000 },
    { suffix: 'ms', factor: 1 },
  ],
  s: [
    { suffix: 'd', factor: 86_400 },
    { suffix: 'h', factor: 3600 },
    { suffix: 'm', factor: 60 },
    { suffix: 's', factor: 1 },
  ],
} as const
