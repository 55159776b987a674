import { defaultOf, type IntegerOption, type OptionSpec, splitName } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { describeRange, SWITCH_WORDS, suffixesOf } from '../options/values.js'
import { hasFileVariant } from './option-sources.js'

type Schema = Readonly<Record<string, unknown>>

/**
 * The JSON Schema (2020-12) of the config file, from the table of options. Editors complete and check with it. It accepts
 * every file that the server accepts; some rules, such as those between options, only `config check` knows.
 */
export function configSchema(): Schema {
  const members: Record<string, unknown> = {
    $schema: { type: 'string', description: 'For editors: the address of this schema.' },
  }
  const groups: Record<string, Record<string, unknown>> = {}
  for (const spec of OPTIONS) {
    const [group, member] = splitName(spec.name)
    const schemas = { [spec.name]: schemaOf(spec), ...fileSchemaOf(spec) }
    Object.assign(members, schemas)
    if (member === undefined) continue
    // A member of a group may be written inside of it too.
    groups[group] ??= {}
    for (const [name, schema] of Object.entries(schemas)) groups[group][splitName(name)[1] ?? name] = schema
  }
  for (const [group, properties] of Object.entries(groups)) {
    members[group] = { type: 'object', minProperties: 1, additionalProperties: false, properties }
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Options of webmq-server',
    type: 'object',
    additionalProperties: false,
    properties: members,
  }
}

function fileSchemaOf(spec: OptionSpec): Readonly<Record<string, Schema>> {
  if (!hasFileVariant(spec)) return {}
  return { [`${spec.name}File`]: { type: 'string', description: `File that holds \`${spec.name}\`.` } }
}

function schemaOf(spec: OptionSpec): Schema {
  const description = spec.detail === undefined ? spec.help : `${spec.help} ${spec.detail}`
  const fixed = spec.type === 'integer' && typeof spec.default === 'function' ? undefined : defaultOf(spec)
  return { description, ...(fixed === undefined ? {} : { default: fixed }), ...typeOf(spec) }
}

function typeOf(spec: OptionSpec): Schema {
  switch (spec.type) {
    case 'integer':
      return {
        anyOf: [
          { type: 'integer', minimum: spec.range[0], maximum: spec.range[1] },
          { type: 'string', pattern: quantityPattern(spec), description: describeRange(spec) },
        ],
      }
    case 'choice':
      return { enum: spec.choices }
    case 'list': {
      const list = { type: 'array', items: { type: 'string' } }
      return spec.takesText === true ? { anyOf: [list, { type: 'string' }] } : list
    }
    case 'switch':
      return { anyOf: [{ type: 'boolean' }, { type: 'string', pattern: anyCase(Object.keys(SWITCH_WORDS)) }] }
    case 'text':
      return { type: 'string' }
  }
}

/** Texts such as `64KiB`; the server then checks the range. */
function quantityPattern({ unit }: IntegerOption): string {
  const units = [...suffixesOf(unit).keys()].filter((name) => name !== '')
  const suffix = units.length === 0 ? '' : `\\s*${anyOf(units)}?`
  return `^\\s*\\d+(\\.\\d+)?${suffix}\\s*$`
}

/** Any of these words, in any case: a pattern of a schema has no flags. */
function anyCase(words: readonly string[]): string {
  return `^\\s*${anyOf(words)}\\s*$`
}

function anyOf(words: readonly string[]): string {
  return `(${words.map((word) => word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)).join('|')})`
}
