// The page docs/bounds.md, from the constants of the sources that bound memory.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './steps.mjs'

/** Sources of what runs in production. */
const SOURCES = [
  'packages/server/src',
  ...readdirSync(path.join(ROOT, 'packages'))
    .filter((name) => /^(broker|outbox|transport)-/.test(name))
    .map((name) => `packages/${name}/src`),
  'packages/native/crates/engine/src',
  'packages/native/crates/websocket/src',
  'packages/client/src',
]
/** Folders below a room belong to it. */
const roomDepthOf = (base) => (base === 'packages/server/src' ? 2 : 1)
/** A text or a list below these holds nothing to speak of. */
const LEAST_BYTES = 4_096
const LEAST_COUNT = 64
/** Tests, and what no node and no page in production loads. */
const LEFT_OUT = /[._]test\.|\/(tests|dev|fuzzing)\b|\/doors\/(cli|demo)\//
const CONSTANT =
  /^(?:export |pub(?:\([a-z]+\))? )?const (MAX_[A-Z0-9_]+|KEPT_[A-Z_]+|[A-Z0-9_]+_MAX_[A-Z]+)(?:: \w+)? = (.+?);?$/
/** Bounds of time, of rounds and of tries hold no memory. */
const NO_MEMORY =
  /_(MS|US|S|INT|ASCII|ROUNDS|ATTEMPTS|FAILURES|RESTARTS|TURNS|TRIES|BITS|GENERATION|LEVELS|REFUSALS|UNIX|PREFIX|DEPTH|WORK|SHARE)$|_(PER|EXTRA|LATE|LONG|SILENT|SHARE|LEN)_/

const INTRODUCTION = `# Where memory is bounded

Every queue, cache, buffer and input has a limit. [Options](configuration.md#limits) set those that an operator chooses:
\`maxOutboxBytes\`, \`maxPayloadBytes\`, \`maxConnections\` and others. This page lists the fixed ones, by the file that holds
them. A limit counts for one object of its file: a connection, a key, a broker's link, a process. Texts below 4 KiB and
lists below 64 entries are left out, and so are limits of time.

This page is generated from constants whose name begins with \`MAX_\` or \`KEPT_\`. After a change, run
\`npm run docs:bounds\`; a test fails until you do.
`

/** The constants that bound memory. @returns {{ file: string, name: string, value: string }[]} */
function bounds() {
  return SOURCES.flatMap((base) =>
    readdirSync(path.join(ROOT, base), { recursive: true })
      .map((file) => `${base}/${file}`)
      .filter((file) => /\.(ts|rs)$/.test(file) && !LEFT_OUT.test(file))
      .toSorted()
      .flatMap(boundsOf),
  )
}

function boundsOf(file) {
  const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n')
  const known = new Map()
  for (const line of lines) {
    const [, name, value] = /^(?:export |pub(?:\([a-z]+\))? )?const ([A-Z0-9_]+)(?:: \w+)? = (.+?);?$/.exec(line) ?? []
    if (name !== undefined) known.set(name, value)
  }
  return lines.flatMap((line) => {
    const [, name, text] = CONSTANT.exec(line) ?? []
    if (name === undefined || NO_MEMORY.test(name)) return []
    const value = numberOf(text, known)
    if (value < (/BYTES|CHARS|LENGTH/.test(name) ? LEAST_BYTES : LEAST_COUNT)) return []
    return [{ file, name, value: value === undefined ? `\`${text}\`` : valueText(name, value) }]
  })
}

/** The whole of `docs/bounds.md`. */
export function boundsPage() {
  const rooms = new Map()
  for (const bound of bounds()) {
    const room = roomOf(bound.file)
    rooms.set(room, [...(rooms.get(room) ?? []), bound])
  }
  return INTRODUCTION + [...rooms].map(([room, rows]) => listOf(room, rows)).join('')
}

function roomOf(file) {
  const [, base = '', rest = ''] = /^(.*\/src)\/(?:(.*)\/)?/.exec(file) ?? []
  return [base, ...rest.split('/').slice(0, roomDepthOf(base))].filter(Boolean).join('/')
}

function listOf(room, rows) {
  const lines = [...new Set(rows.map(({ file }) => file))].map((file) => {
    const own = rows.filter((row) => row.file === file).map(({ name, value }) => `\`${name}\` ${value}`)
    return `- ${path.relative(room, file)}: ${own.join(', ')}`
  })
  return `\n## ${room}\n\n${lines.join('\n')}\n`
}

function valueText(name, value) {
  return name.includes('BYTES') ? sizeText(value) : value.toLocaleString('en')
}

function sizeText(bytes) {
  if (bytes >= 1_048_576 && bytes % 1_048_576 === 0) return `${bytes / 1_048_576} MiB`
  if (bytes >= 1_024 && bytes % 1_024 === 0) return `${(bytes / 1_024).toLocaleString('en')} KiB`
  return `${bytes.toLocaleString('en')} B`
}

/** The value of a sum, product, power or shift of numbers and constants of the same file. */
function numberOf(text, known) {
  const [, other] = /^if cfg!.*else \{ (.*) \}$/.exec(text) ?? []
  const plain = (other ?? text).replaceAll(/(?<=[\da-f])_(?=[\da-f])/g, '')
  const filled = plain.replaceAll(/[A-Z][A-Z0-9_]+/g, (name) => {
    const value = known.has(name) ? numberOf(known.get(name), new Map()) : undefined
    return value === undefined ? name : String(value)
  })
  return /^(0x[\da-f]+|[\d\s+*()<-]+)$/i.test(filled) ? calculated(filled) : undefined
}

/** From the loosest to the tightest, as in both languages. */
const OPERATORS = [
  { sign: / << /, of: (left, right) => left * 2 ** right },
  { sign: / \+ /, of: (left, right) => left + right },
  { sign: / - /, of: (left, right) => left - right },
  { sign: / \* /, of: (left, right) => left * right },
  { sign: / \*\* /, of: (left, right) => left ** right },
]

function calculated(text) {
  const inner = /\(([^()]*)\)/.exec(text)
  if (inner !== null) return calculated(text.replace(inner[0], calculated(inner[1])))
  const operator = OPERATORS.find(({ sign }) => sign.test(text))
  if (operator === undefined) return Number(text)
  const [first, ...rest] = text.split(operator.sign).map(calculated)
  return rest.reduce(operator.of, first)
}
