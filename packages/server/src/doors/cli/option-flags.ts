import { statSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import type { ServerOptions } from '../options/server-options.js'
import {
  type ChoiceOption,
  describeDefault,
  environmentNameOf,
  type OptionSpec,
  type OptionValue,
  shownValue,
} from '../options/spec.js'
import { readConfigFile } from './config-file.js'
import { mapEach } from './map-each.js'
import {
  CONFIG_VARIABLE,
  DEFAULTS_VARIABLE,
  type FileRecorder,
  hasFileVariant,
  mergeSources,
  type OptionValues,
  readEnvironment,
  readOption,
  readPlatformPort,
} from './option-sources.js'

/** `auto|pretty|json`. */
const MAX_CHOICES_CHARS = 16

export function addOptionFlags(command: Command, specs: readonly OptionSpec[]): void {
  for (const spec of specs) {
    const option = new Option(flagsOf(spec), describe(spec)).helpGroup(`${spec.section}:`)
    command.addOption(spec.type === 'list' ? option.argParser(collect) : option)
    if (spec.type === 'switch') {
      // Overrides a switch from the environment or the file; hidden because it is rarely needed.
      command.addOption(new Option(`--no-${spec.flag}`).default(undefined).hideHelp())
    }
    if (hasFileVariant(spec)) {
      const description = `The same, read from a file. (env: ${environmentNameOf(spec)}_FILE)`
      const option = new Option(`${fileFlagOf(spec)} <file>`, description).helpGroup(`${spec.section}:`)
      command.addOption(spec.type === 'list' ? option.argParser(collect) : option)
    }
  }
  command.addOption(
    new Option('-c, --config <file>', `JSON file with options. (env: ${CONFIG_VARIABLE})`).helpGroup('General:'),
  )
}

/** The flag that reads an option from a file. */
export function fileFlagOf(spec: OptionSpec): string {
  return `--${spec.flag}-file`
}

function flagsOf(spec: OptionSpec): string {
  const short = spec.shortFlag === undefined ? '' : `-${spec.shortFlag}, `
  const value = spec.type === 'switch' ? '' : ` <${placeholderOf(spec)}>`
  return `${short}--${spec.flag}${value}`
}

/** Whether the choices of an option fit into its flag. A wide flag leaves no room for the descriptions of all. */
function isShort({ choices }: ChoiceOption): boolean {
  return choices.length < 4 && choices.join('|').length <= MAX_CHOICES_CHARS
}

/** Name of an option's value in the help; `size` and `time` accept units. */
export function placeholderOf(spec: OptionSpec): string {
  if (spec.type === 'choice') return isShort(spec) ? spec.choices.join('|') : 'name'
  if (spec.type === 'switch') return 'on|off'
  if (spec.type !== 'integer') return spec.placeholder
  if (spec.unit === undefined) return 'number'
  return spec.unit === 'bytes' ? 'size' : 'time'
}

function describe(spec: OptionSpec): string {
  const notes = [
    spec.type === 'list' ? 'may be repeated' : undefined,
    spec.type === 'choice' && !isShort(spec) ? spec.choices.join(' ') : undefined,
    defaultNote(spec),
    `env: ${environmentNameOf(spec)}`,
  ]
  return `${spec.help.replaceAll('`', '')} (${notes.filter((note) => note !== undefined).join(', ')})`
}

function defaultNote(spec: OptionSpec): string | undefined {
  const text = spec.type === 'switch' ? undefined : describeDefault(spec)
  return text === undefined ? undefined : `default: ${text}`
}

/** Repeated flags extend a list. */
export function collect(text: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, text]
}

/** Values of the flags on the command line: their texts are read with all other sources, and again for a reload. */
function readFlags(command: Command, specs: readonly OptionSpec[], record: FileRecorder | undefined): OptionValues {
  const given: Readonly<Record<string, unknown>> = command.opts()
  const values = new Map<string, OptionValue>()
  mapEach(specs, (spec) => {
    const value = given[camelCase(spec.flag)] as boolean | string | readonly string[] | undefined
    if (typeof value === 'boolean') values.set(spec.name, value)
    else if (value !== undefined)
      values.set(spec.name, readOption(spec, { label: `--${spec.flag}`, text: value, record }))
    const file = hasFileVariant(spec) ? given[camelCase(`${spec.flag}-file`)] : undefined
    if (file === undefined) return
    const label = fileFlagOf(spec)
    if (value !== undefined) {
      throw invalidOption(`--${spec.flag} and ${label} are both given; use one`)
    }
    values.set(spec.name, readOption(spec, { label, text: file as string | readonly string[], isFile: true, record }))
  })
  return values
}

/** The name that commander gives to a flag's value. */
function camelCase(flag: string): string {
  return flag.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

/** Where values come from, and the values; earlier sources override later ones. */
export interface NamedSource {
  readonly name: string
  readonly values: OptionValues
  /** It is a config file. */
  readonly isFile?: true
}

/**
 * Flags, environment, config file, `PORT` and the file of defaults, in this order of precedence.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the name of the flag, variable or file.
 */
export function readNamedSources(
  command: Command,
  specs: readonly OptionSpec[],
  env: NodeJS.ProcessEnv,
  record?: FileRecorder,
): readonly NamedSource[] {
  const { config } = command.opts<{ config?: string }>()
  const readFile = (path: string | undefined): readonly NamedSource[] =>
    path ? [{ name: path, values: readConfigFile(path, specs, record), isFile: true }] : []
  const readers: readonly (() => readonly NamedSource[])[] = [
    () => [{ name: 'flag', values: readFlags(command, specs, record) }],
    () => [{ name: 'environment', values: readEnvironment(env, specs, record) }],
    () => readFile(config ?? env[CONFIG_VARIABLE]),
    () => [{ name: 'PORT', values: readPlatformPort(env, specs) }],
    () => readFile(env[DEFAULTS_VARIABLE]),
  ]
  return mapEach(readers, (read) => read()).flat()
}

/**
 * The options of all sources, merged. What none of them sets is absent.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the name of the flag, variable or file.
 */
export function readSources(
  command: Command,
  specs: readonly OptionSpec[],
  env: NodeJS.ProcessEnv,
  record?: FileRecorder,
): ServerOptions {
  return mergeSources(readNamedSources(command, specs, env, record).map(({ values }) => values))
}

/** Permission of everybody to read a file. */
const READ_BY_OTHERS = 0o004

/**
 * Secrets of the options that every user of this machine can see, because they stand on the command line or in a file that all
 * may read; one sentence each. Windows has no such permissions.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, as the sources.
 */
export function exposedSecrets(
  command: Command,
  specs: readonly OptionSpec[],
  env: NodeJS.ProcessEnv,
): readonly string[] {
  const files = new Map<string, string>()
  const fromFiles = new Set<string>()
  const sources = readNamedSources(command, specs, env, (name, path) => {
    fromFiles.add(name)
    if (specs.some((spec) => spec.name === name && holdsSecret(spec, undefined))) files.set(path, name)
  })
  const warnings: string[] = []
  for (const { name: source, values } of sources) {
    for (const spec of specs) {
      const value = values.get(spec.name)
      if (spec.name === 'tls.keyFile' && Array.isArray(value)) for (const path of value) files.set(path, spec.name)
      if (value === undefined || fromFiles.has(spec.name) || !holdsSecret(spec, value)) continue
      if (source === 'flag') warnings.push(`every user of this machine can see --${spec.flag}; ${otherWayOf(spec)}`)
      else if (source !== 'environment' && source !== 'PORT') files.set(source, spec.name)
    }
  }
  return [...warnings, ...(process.platform === 'win32' ? [] : [...files].flatMap(readableByOthers))]
}

/** Whether a value, or without one any value, is a secret. */
function holdsSecret(spec: OptionSpec, value: unknown): boolean {
  return value === undefined ? 'shown' in spec || 'isSecret' in spec : shownValue(spec, value) !== value
}

function otherWayOf(spec: OptionSpec): string {
  return `use ${hasFileVariant(spec) ? fileFlagOf(spec) : environmentNameOf(spec)}`
}

function readableByOthers([path, name]: readonly [path: string, name: string]): readonly string[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & READ_BY_OTHERS) === 0
    ? []
    : [`every user of this machine can read ${path} (${name}); chmod o-r ${path}`]
}
