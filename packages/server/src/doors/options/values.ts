import { didYouMean } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { listParts } from '../../kernel/base/list-parts.js'
import {
  formatQuantity,
  type IntegerOption,
  type ListOption,
  type OptionSpec,
  type OptionValue,
  SCALES,
  shownValue,
} from './spec.js'

/**
 * Checks one value against its row of the table.
 *
 * @param label The source's name for the option, which begins the error: `port`, `--port`, `WEBMQ_PORT`.
 * @throws {WebMQError} `E_OPTION_INVALID` with the label, the value (unless it is secret) and the allowed values.
 */
export function validateOption(spec: OptionSpec, value: unknown, label: string = spec.name): OptionValue {
  const given = spec.type === 'list' && spec.takesText === true && typeof value === 'string' ? [value] : value
  const bad = findBad(spec, given)
  if (bad === undefined) return given as OptionValue
  const shown = shownValue(spec, bad.value)
  const subject = shown === undefined ? 'not' : `${show(shown)} is not`
  throw invalidOption(`${label}: ${subject} ${bad.allowed}`)
}

/** A value, or one entry of a list, that is not allowed, and a description of the allowed ones. */
interface BadValue {
  readonly value: unknown
  readonly allowed: string
}

function findBad(spec: OptionSpec, value: unknown): BadValue | undefined {
  if (spec.type !== 'list') {
    const allowed = describeAllowed(spec, value)
    return allowed === undefined ? undefined : { value, allowed }
  }
  if (!Array.isArray(value)) {
    const each = spec.check('')
    return { value, allowed: `a list of texts${each === undefined ? '' : `, each ${each}`}` }
  }
  const { maxCount } = spec
  if (maxCount !== undefined && (value.length === 0 || value.length > maxCount)) {
    return { value: value.length === 0 ? value : undefined, allowed: `a list of 1 to ${maxCount} texts` }
  }
  for (const entry of value as readonly unknown[]) {
    const allowed = typeof entry === 'string' ? spec.check(entry) : 'a text'
    if (allowed !== undefined) return { value: entry, allowed }
  }
  return undefined
}

/**
 * Reads a value from the text of a flag, an environment variable or a string in the config file: `256KiB`, `25s`, `on`,
 * `a,b`.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, as {@link validateOption}.
 */
export function parseOption(spec: OptionSpec, text: string, label: string = spec.name): OptionValue {
  return validateOption(spec, convert(spec, text), label)
}

function describeAllowed(spec: Exclude<OptionSpec, ListOption>, value: unknown): string | undefined {
  switch (spec.type) {
    case 'integer':
      return isWithin(value, spec) ? undefined : describeRange(spec)
    case 'text':
      if (typeof value !== 'string') return 'a text'
      return spec.check === undefined ? (value === '' ? 'a text that is not empty' : undefined) : spec.check(value)
    case 'choice':
      if (typeof value === 'string' && spec.choices.includes(value)) return undefined
      return `one of ${spec.choices.join(', ')}${typeof value === 'string' ? didYouMean(value, spec.choices) : ''}`
    case 'switch':
      return typeof value === 'boolean' ? undefined : 'true or false'
  }
}

function isWithin(value: unknown, { range: [min, max] }: IntegerOption): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
}

/** The range of a number in words: `from 1 to 64MiB, in bytes`. */
export function describeRange({ range: [min, max], unit }: IntegerOption): string {
  const range = `a whole number from ${formatQuantity(min, unit)} to ${formatQuantity(max, unit)}`
  return unit === undefined ? range : `${range} (plain numbers are ${UNIT_NAMES[unit]})`
}

const UNIT_NAMES = { bytes: 'bytes', ms: 'milliseconds', s: 'seconds' } as const

/** Suffixes that a text may have, in lower case; the empty one is for plain numbers. `k`, `kb` and `KiB` are 1,024 bytes. */
export function suffixesOf(unit: IntegerOption['unit']): ReadonlyMap<string, number> {
  const suffixes = new Map([['', 1]])
  if (unit === 'bytes') suffixes.set('b', 1)
  for (const [suffix, factor] of Object.entries(unit === undefined ? {} : SCALES[unit])) {
    const name = suffix.toLowerCase()
    for (const form of [name, name.replace('ib', 'b'), name.replace('ib', '')]) suffixes.set(form, factor)
  }
  return suffixes
}

/**
 * Reads `256KiB` or `25s`; `undefined` when the text is not a quantity of that unit. `kb` and `KiB` both mean 1,024
 * bytes.
 */
export function parseQuantity(text: string, unit: IntegerOption['unit']): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  const factor = suffixesOf(unit).get(match?.[2]?.toLowerCase() ?? '')
  if (match === null || factor === undefined) return undefined
  return Number(match[1]) * factor
}

export const SWITCH_WORDS: Readonly<Record<string, boolean>> = {
  true: true,
  on: true,
  yes: true,
  1: true,
  false: false,
  off: false,
  no: false,
  0: false,
}

/** Returns texts that cannot be converted unchanged, because validation then reports the allowed values. */
function convert(spec: OptionSpec, text: string): unknown {
  switch (spec.type) {
    case 'integer':
      return parseQuantity(text, spec.unit) ?? text
    case 'list':
      return spec.separator === 'none' ? [text] : listParts(text, spec.separator)
    case 'switch':
      return SWITCH_WORDS[text.trim().toLowerCase()] ?? text
    default:
      return text
  }
}

const MAX_SHOWN_CHARS = 80

function show(value: unknown): string {
  const text = typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? String(value))
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
}
