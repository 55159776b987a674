import { writeFileSync } from 'node:fs'
import { DOCS_URL } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { codeOf } from '../../kernel/base/reason.js'
import { defaultOf, describeDefault, formatQuantity, type OptionSpec } from '../options/spec.js'
import { OPTION_SECTIONS, OPTIONS } from '../options/table.js'
import { hasFileVariant } from './option-sources.js'
import { note, type Terminal } from './terminal.js'

/** What a first deployment decides about. `config init --all` has every option. */
const STARTERS: readonly string[] = [
  'host',
  'port',
  'adminPort',
  'tls.certFile',
  'tls.keyFile',
  'broker',
  'maxPayloadBytes',
  'drainTimeoutMs',
  'history',
  'origins',
  'jwt.secret',
  'jwt.jwksUrl',
  'apiKeys',
  'logLevel',
  'metrics',
]

/** Values that show the form of an option without a default. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  adminPort: 9090,
  'tls.certFile': '/etc/webmq/fullchain.pem',
  'tls.keyFile': '/etc/webmq/key.pem',
  'jwt.publicKey': '/etc/webmq/jwt-key.pem',
  'jwt.jwksUrl': 'https://id.example.com/.well-known/jwks.json',
  'jwt.issuer': 'https://id.example.com/',
  'jwt.audience': 'webmq',
  'jwt.algorithms': ['HS256'],
  'outbox.url': 'postgres://webmq@db.example/app?sslmode=verify-full',
  history: ['chat.#=100,10m'],
  origins: ['https://app.example.com'],
}

/** The same by the name of a value in `--help`. */
const FORMS: Readonly<Record<string, string>> = { file: '/etc/webmq/file', url: 'https://app.example.com/' }

const MAX_LINE_CHARS = 100

/**
 * Writes a config file in which every line is a comment, with the default or an example as its value.
 *
 * @param path `-` for standard output.
 * @throws {WebMQError} `E_OPTION_INVALID`: the file exists already, or cannot be written.
 */
export function configInit(path: string, isFull: boolean, terminal: Terminal): void {
  const text = starterFile(isFull)
  if (path === '-') {
    terminal.stdout.write(text)
    return
  }
  try {
    // Fails if it exists.
    writeFileSync(path, text, { flag: 'wx' })
  } catch (cause) {
    const code = codeOf(cause)
    const reason = code === 'EEXIST' ? 'it exists already; name another file, or remove it' : code
    throw invalidOption(`cannot write ${path}: ${reason}`, cause)
  }
  note(`wrote ${path}; try it with webmq-server config check --config ${path}`, terminal)
}

/** The text of the file: an object without members, until a line is made one. */
function starterFile(isFull: boolean): string {
  const specs = OPTIONS.filter(({ name }) => isFull || STARTERS.includes(name))
  const sections = OPTION_SECTIONS.flatMap((section) => {
    const entries = specs.filter((spec) => spec.section === section).map(entryOf)
    return entries.length === 0 ? [] : [`  // --- ${section} ---\n\n${entries.join('\n')}`]
  })
  return `// Options of webmq-server. To set one, remove the // before its name.
// All options: ${DOCS_URL}configuration.md
{
${sections.join('\n')}}
`
}

function entryOf(spec: OptionSpec): string {
  const fallback = describeDefault(spec)
  const help = fallback === undefined || spec.type === 'switch' ? spec.help : `${spec.help} Default: ${fallback}.`
  // A secret belongs in a file of its own.
  const isInFile = hasFileVariant(spec) && 'isSecret' in spec && spec.isSecret === true
  const name = isInFile ? `${spec.name}File` : spec.name
  const value = isInFile ? `/etc/webmq/${spec.flag}` : sampleOf(spec)
  return `  ${wrap(`// ${help}`, '  // ')}\n  // ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`
}

function sampleOf(spec: OptionSpec): unknown {
  if (spec.name in SAMPLES) return SAMPLES[spec.name]
  if (spec.type === 'switch') return true
  const fallback = defaultOf(spec)
  if (spec.type === 'integer') {
    const value = Number(fallback ?? Math.min(Math.max(spec.range[0], 100), spec.range[1]))
    // A text with its unit is easier to read: 256KiB.
    return spec.unit === undefined ? value : formatQuantity(value, spec.unit)
  }
  return fallback ?? (spec.type === 'text' ? (FORMS[spec.placeholder] ?? 'text') : undefined)
}

/** Breaks a paragraph between words, but not within code. @param indent Begins every line but the first. */
export function wrap(text: string, indent = '', maxLineChars = MAX_LINE_CHARS): string {
  const words = text.match(/(?:`[^`]*`|[^\s`])+/g) ?? []
  const lines: string[] = []
  for (const word of words) {
    const line = lines.at(-1)
    if (line === undefined) lines.push(word)
    else if (line.length + 1 + word.length > maxLineChars) lines.push(indent + word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines.join('\n')
}
