import { readFileSync } from 'node:fs'
import { WebMQError } from 'webmq-client/protocol'
import { type ServerOptions, splitName } from '../options/options.js'
import { environmentNameOf, type OptionSpec, type OptionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { parseOption, validateOption } from '../options/values.js'

/** Values of one source, by option name. */
export type OptionValues = ReadonlyMap<string, OptionValue>

/** The options whose name begins with a prefix, such as `jwt.`. */
export function optionsNamed(prefix: string): readonly OptionSpec[] {
  return OPTIONS.filter((spec) => spec.name.startsWith(prefix))
}

/** Merges sources into the options of {@link createServer}; earlier sources override later ones. */
export function mergeSources(sources: readonly OptionValues[]): ServerOptions {
  const merged: Record<string, unknown> = {}
  for (const source of sources.toReversed()) {
    for (const [name, value] of source) {
      const [group, member] = splitName(name)
      if (member === undefined) merged[group] = value
      else merged[group] = { ...(merged[group] as object | undefined), [member]: value }
    }
  }
  return merged
}

/** A text value and its source. */
export interface TextSource {
  /** The source's name for the option, for errors. */
  readonly label: string
  readonly text: string
  /** The text is the name of a file with the value. */
  readonly isFile?: boolean
}

/**
 * Reads the value of one option from a text or from the file that the text names.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when the value is not allowed or the file cannot be read.
 */
export function readOption(spec: OptionSpec, { label, text, isFile = false }: TextSource): OptionValue {
  const isPemFile = spec.type === 'text' && spec.fromFile === 'pem' && !text.trimStart().startsWith('-----BEGIN')
  if (isFile && spec.type === 'list') return validateOption(spec, linesOf(readTextFile(text, label)), label)
  return parseOption(spec, isFile || isPemFile ? readTextFile(text, label) : text, label)
}

function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/**
 * Reads a file that an option names. Drops the final line break, which editors add.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when it cannot be read.
 */
export function readTextFile(path: string, label: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw new WebMQError('E_OPTION_INVALID', { detail: `${label}: cannot read ${path} (${errorCode(cause)})`, cause })
  }
}

function errorCode(error: unknown): string {
  if (error instanceof Error) return 'code' in error ? String(error.code) : error.message
  return String(error)
}

/** Whether the option has a flag and a variable that name a file with its value. */
export function hasFileVariant(spec: OptionSpec): boolean {
  return (spec.type === 'text' || spec.type === 'list') && spec.fromFile === 'file-flag'
}

/** The variable that names the file with an option's value: `WEBMQ_JWT_SECRET_FILE`. */
export function fileVariableOf(spec: OptionSpec): string {
  return `${environmentNameOf(spec)}_FILE`
}
