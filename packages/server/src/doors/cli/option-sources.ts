import { readFileSync, statSync } from 'node:fs'
import { didYouMean } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { listParts } from '../../kernel/base/list-parts.js'
import { codeOf } from '../../kernel/base/reason.js'
import type { ServerOptions } from '../options/server-options.js'
import {
  environmentNameOf,
  type ListOption,
  type OptionSpec,
  type OptionValue,
  setOption,
  type TextOption,
} from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { parseOption, validateOption } from '../options/values.js'
import { mapEach } from './map-each.js'

export type OptionValues = ReadonlyMap<string, OptionValue>

/** Gets the name of each option that was read from a file of its own, and the path of the file. */
export type FileRecorder = (name: string, path: string) => void

export function optionsNamed(prefix: string): readonly OptionSpec[] {
  return OPTIONS.filter((spec) => spec.name.startsWith(prefix))
}

/** Merges sources into the options of {@link createServer}; earlier sources override later ones. */
export function mergeSources(sources: readonly OptionValues[]): ServerOptions {
  const merged: Record<string, unknown> = {}
  for (const source of sources.toReversed()) {
    for (const [name, value] of source) setOption(merged, name, value)
  }
  return merged
}

export interface TextSource {
  readonly label: string
  readonly text: string | readonly string[]
  /** The texts are names of files with the value. */
  readonly isFile?: boolean
  readonly record?: FileRecorder | undefined
}

/**
 * Reads the value of one option from texts or from the files that they name.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when the value is not allowed or a file cannot be read.
 */
export function readOption(spec: OptionSpec, source: TextSource): OptionValue {
  const { label, text } = source
  if (spec.type === 'list' && (spec.fromFile === 'pem' || source.isFile === true)) {
    const entries = [text].flat().flatMap((entry) => (isPem(entry) ? [entry] : listParts(entry)))
    return validateOption(
      spec,
      entries.flatMap((entry) => entriesIn(spec, readEntry(spec, entry, source))),
      label,
    )
  }
  if (typeof text !== 'string')
    return validateOption(
      spec,
      text.flatMap((one) => parseOption(spec, one, label)),
      label,
    )
  return parseOption(spec, source.isFile === true ? readEntry(spec, text, source) : text, label)
}

/** The text itself if it is PEM text, otherwise the content of the file that it names. */
function readEntry(spec: OptionSpec, text: string, { label, record, isFile }: TextSource): string {
  if (isFile !== true && isPem(text)) return text
  record?.(spec.name, text)
  return readTextFile(text, label)
}

/** A secret and PEM text may contain any character; other files have an entry per line. */
function entriesIn(spec: ListOption, content: string): readonly string[] {
  return spec.fromFile === 'pem' || spec.separator === 'none' ? [content] : listParts(content, '\n')
}

function isPem(text: string): boolean {
  return text.trimStart().startsWith('-----BEGIN')
}

/** What came out of pipes, such as `--config <(sops -d webmq.json)`. Reading one again, for a reload, could wait for ever. */
const readPipes = new Map<string, string>()

/**
 * Reads a file that an option names. Drops the final line break, which editors add.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when it cannot be read.
 */
export function readTextFile(path: string, label: string): string {
  try {
    const text = readPipes.get(path) ?? readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    if (statSync(path).isFIFO()) readPipes.set(path, text)
    return text
  } catch (cause) {
    throw invalidOption(`${label}: cannot read ${path} (${codeOf(cause)})`, cause)
  }
}

/** Whether the option has a flag and a variable that name a file with its value. */
export function hasFileVariant(spec: OptionSpec): spec is (TextOption | ListOption) & { fromFile: 'file-flag' } {
  return (spec.type === 'text' || spec.type === 'list') && spec.fromFile === 'file-flag'
}

/** The variable that names the file with an option's value: `WEBMQ_JWT_SECRET_FILE`. */
function fileVariableOf(spec: OptionSpec): string {
  return `${environmentNameOf(spec)}_FILE`
}

/** The variable that names the config file, like `--config`. */
export const CONFIG_VARIABLE = 'WEBMQ_CONFIG'

/** The variable that names a file like the config file, for images and packages: every other source overrides it. */
export const DEFAULTS_VARIABLE = 'WEBMQ_DEFAULTS'

/** The address and the token of commands that are clients of a server. */
export const URL_VARIABLE = 'WEBMQ_URL'
export const TOKEN_VARIABLE = 'WEBMQ_TOKEN'

/**
 * Reads options from the environment: `WEBMQ_MAX_PAYLOAD=64KiB`, `WEBMQ_JWT_SECRET_FILE=/run/secrets/jwt`.
 *
 * An empty variable counts as not set. Variables for tokens are an exception, because an empty secret must not open the
 * server to everyone.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the name of the variable.
 */
export function readEnvironment(
  env: NodeJS.ProcessEnv,
  specs: readonly OptionSpec[] = OPTIONS,
  record?: FileRecorder,
): OptionValues {
  const values = new Map<string, OptionValue>()
  mapEach(specs, (spec) => {
    const source = sourceOf(spec, env)
    if (source !== undefined) values.set(spec.name, readOption(spec, { ...source, record }))
  })
  return values
}

function sourceOf(spec: OptionSpec, env: NodeJS.ProcessEnv): TextSource | undefined {
  const name = environmentNameOf(spec)
  const text = textOf(spec, env, name)
  const file = hasFileVariant(spec) ? textOf(spec, env, fileVariableOf(spec)) : undefined
  if (text !== undefined && file !== undefined) {
    throw invalidOption(`${name} and ${fileVariableOf(spec)} are both set; set one`)
  }
  if (text !== undefined) return { label: name, text }
  return file === undefined ? undefined : { label: fileVariableOf(spec), text: file, isFile: true }
}

/**
 * Reads `PORT`, which hosting platforms set. It is not in {@link readEnvironment}, because the config file overrides it:
 * a `PORT` may be meant for another program, `"port"` is meant for this one.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when it is not a port.
 */
export function readPlatformPort(env: NodeJS.ProcessEnv, specs: readonly OptionSpec[] = OPTIONS): OptionValues {
  const spec = specs.find(({ name }) => name === 'port')
  const text = spec === undefined ? undefined : textOf(spec, env, 'PORT')
  if (spec === undefined || text === undefined) return new Map()
  return new Map([[spec.name, readOption(spec, { label: 'PORT', text })]])
}

function textOf(spec: OptionSpec, env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name]
  return text === '' && spec.section !== 'Tokens' ? undefined : text
}

/** One sentence for each unknown `WEBMQ_…` variable, usually a typo. */
export function unknownVariables(env: NodeJS.ProcessEnv): readonly string[] {
  const known = [
    CONFIG_VARIABLE,
    DEFAULTS_VARIABLE,
    URL_VARIABLE,
    TOKEN_VARIABLE,
    ...OPTIONS.map(environmentNameOf),
    ...OPTIONS.filter(hasFileVariant).map(fileVariableOf),
  ]
  return Object.keys(env)
    .filter((name) => name.startsWith('WEBMQ_') && !known.includes(name))
    .map((name) => `unknown environment variable ${name}${didYouMean(name, known)}`)
}
