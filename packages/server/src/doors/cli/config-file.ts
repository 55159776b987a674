import { didYouMean } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { isObject } from '../../kernel/base/is-object.js'
import { reasonOf } from '../../kernel/base/reason.js'
import type { OptionSpec, OptionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { validateOption } from '../options/values.js'
import { mapEach } from './map-each.js'
import { type FileRecorder, hasFileVariant, type OptionValues, readOption, readTextFile } from './option-sources.js'

/** Members for editors, not options. */
const IGNORED_NAMES: readonly string[] = ['$schema']

/**
 * Reads a config file: one JSON object with the names of `ServerOptions`; comments and trailing commas are allowed. Numbers may be texts with a unit (`"25s"`).
 * A secret may be in its own file (`"jwt": { "secretFile": … }`). Paths are relative to the working directory.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the names of the file and the option.
 */
export function readConfigFile(
  path: string,
  specs: readonly OptionSpec[] = OPTIONS,
  record?: FileRecorder,
): OptionValues {
  const values = new Map<string, OptionValue>()
  mapEach(flatten(parse(path)), ([name, value]) => {
    if (IGNORED_NAMES.includes(name)) return
    const label = `${path}: ${name}`
    const fileSpec = OPTIONS.filter(hasFileVariant).find((spec) => name === `${spec.name}File`)
    const spec: OptionSpec | undefined = fileSpec ?? OPTIONS.find((known) => known.name === name)
    if (spec === undefined) {
      const names = OPTIONS.map((known) => known.name)
      throw invalidOption(`${label}: unknown option${didYouMean(name, names)}`)
    }
    if (!specs.some((wanted) => wanted.name === spec.name)) return
    const isFile = fileSpec !== undefined
    const mayNameFiles = isFile || (spec.type === 'list' && spec.fromFile === 'pem')
    const isText = spec.type === 'list' ? mayNameFiles && isTexts(value) : typeof value === 'string'
    values.set(
      spec.name,
      isText
        ? readOption(spec, { label, text: value as string | string[], isFile, record })
        : validateOption(spec, value, label),
    )
  })
  return values
}

function parse(path: string): object {
  const text = readTextFile(path, 'config')
  let value: unknown
  try {
    value = JSON.parse(withoutComments(text))
  } catch (cause) {
    const reason = reasonOf(cause)
    throw invalidOption(`config: ${path} is not JSON (${reason})`, cause)
  }
  if (isObject(value)) return value
  throw invalidOption(`config: ${path} does not contain an object`)
}

/**
 * Turns `{ jwt: { issuer } }` into `jwt.issuer`. Keeps empty objects, which are then unknown: an empty `jwt` must not go unnoticed;
 * and those that stand where an option has another value.
 */
function flatten(value: object): readonly (readonly [string, unknown])[] {
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) =>
    isObject(member) && Object.keys(member).length > 0 && !OPTIONS.some((known) => known.name === name)
      ? Object.entries(member).map(
          ([inner, innerValue]: [string, unknown]) => [`${name}.${inner}`, innerValue] as const,
        )
      : [[name, member] as const],
  )
}

function isTexts(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every((entry) => typeof entry === 'string'))
}

const STRING_OR_COMMENT = /"(?:[^"\\]|\\[\s\S])*"|\/\/[^\n\r]*|\/\*[\s\S]*?\*\//g
const STRING_OR_LAST_COMMA = /"(?:[^"\\]|\\[\s\S])*"|(?<![{[,]\s*),(?=\s*[}\]])/g

/**
 * JSON without the comments and trailing commas of JSONC, so that lines of a config file can be switched on and off.
 * They become spaces: the places in errors of `JSON.parse` stay those of the file.
 */
export function withoutComments(text: string): string {
  return text.replace(STRING_OR_COMMENT, blankUnlessString).replace(STRING_OR_LAST_COMMA, blankUnlessString)
}

function blankUnlessString(token: string): string {
  return token.startsWith('"') ? token : token.replace(/[^\n\r]/g, ' ')
}
