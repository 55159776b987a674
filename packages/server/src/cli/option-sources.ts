import { readFileSync } from 'node:fs'
import { WebMQError } from 'webmq-client/protocol'
import { type ServerOptions, splitName } from '../options/options.js'
import { environmentNameOf, type OptionSpec, type OptionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { parseOption } from '../options/values.js'

/** Values of one source, by the names of the table. */
export type OptionValues = ReadonlyMap<string, OptionValue>

/** The rows of the table whose name begins with a prefix: `jwt.` for what concerns tokens. */
export function optionsNamed(prefix: string): readonly OptionSpec[] {
  return OPTIONS.filter((spec) => spec.name.startsWith(prefix))
}

/** Puts sources over each other, the strongest first, as the options of {@link createServer}. */
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

/** Where one text value came from. */
export interface TextSource {
  /** How the source names the option, for errors. */
  readonly label: string
  readonly text: string
  /** The text names a file that holds the value. */
  readonly isFile?: boolean
}

/**
 * Reads the text of one option, from the file that it names when it names one.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when the value is not allowed, or the file cannot be read.
 */
export function readOption(spec: OptionSpec, { label, text, isFile = false }: TextSource): OptionValue {
  const isPemFile = spec.type === 'text' && spec.fromFile === 'pem' && !text.trimStart().startsWith('-----BEGIN')
  return parseOption(spec, isFile || isPemFile ? readTextFile(text, label) : text, label)
}

/**
 * Reads a file that an option names. The line break at its end is not part of the value: editors add it.
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

/** Whether an option may be given by naming a file that holds it. */
export function hasFileVariant(spec: OptionSpec): boolean {
  return spec.type === 'text' && spec.fromFile === 'file-flag'
}

/** The variable that names a file which holds an option: `WEBMQ_JWT_SECRET_FILE`. */
export function fileVariableOf(spec: OptionSpec): string {
  return `${environmentNameOf(spec)}_FILE`
}
