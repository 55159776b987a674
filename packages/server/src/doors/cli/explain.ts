import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { closestName, DOCS_URL, ERRORS, type ErrorCode, type ErrorSpec, WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { paint, type Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server explain E_ORIGIN_FORBIDDEN
  webmq-server explain 4008                 a close code
  webmq-server explain                      all codes
`

/** A copy of `docs/errors.md`, made by the build. */
const PAGE = new URL('../../../errors.md', import.meta.url)

const CODES = Object.keys(ERRORS) as readonly ErrorCode[]

export function explainCommand(terminal: Terminal): Command {
  return new Command('explain')
    .description('Explain an error code or a close code: its cause and its fix.')
    .addHelpText('before', EXAMPLES)
    .argument('[code]', 'E_ORIGIN_FORBIDDEN, or 4008; all codes without it.')
    .option('--json', 'Print JSON.')
    .action((name: string | undefined, { json = false }: { json?: boolean }) => {
      const codes = name === undefined ? CODES : [codeOf(name)]
      const print = (value: unknown) => terminal.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
      if (json) print(name === undefined ? codes.map(factsOf) : explanationOf(codeOf(name)))
      else if (name === undefined) terminal.stdout.write(codes.map(lineOf).join(''))
      else terminal.stdout.write(toText(explanationOf(codeOf(name)), terminal))
    })
}

/** @throws {WebMQError} `E_OPTION_INVALID`, with the codes that may be meant. */
function codeOf(name: string): ErrorCode {
  const upper = name.toUpperCase()
  const code = CODES.find((code) => code === upper || String(specOf(code).closeCode) === name)
  if (code !== undefined) return code
  const isOneOf = CODES.filter((code) => code.includes(upper.replace(/^E_/, '')))
  const closest = isOneOf.length > 0 ? isOneOf : [closestName(name, CODES) ?? []].flat()
  const hint = closest.length === 0 ? '; `webmq-server explain` lists all' : `, did you mean ${closest.join(' or ')}?`
  throw invalidOption(`${name}: unknown error or close code${hint}`)
}

function specOf(code: ErrorCode): ErrorSpec {
  return ERRORS[code]
}

function factsOf(code: ErrorCode) {
  return { code, ...specOf(code), docs: new WebMQError(code).docs }
}

function lineOf(code: ErrorCode): string {
  const { message, closeCode } = specOf(code)
  return `${code.padEnd(27)}${String(closeCode ?? '').padEnd(6)}${message}\n`
}

interface Explanation extends ReturnType<typeof factsOf> {
  /** Markdown: what happened, then a list of cause and fix. */
  readonly text: string
}

function explanationOf(code: ErrorCode): Explanation {
  const page = readFileSync(PAGE, 'utf8')
  const [, section = ''] = page.split(`\n### ${code}\n`)
  // The message and the facts of the section are those of the table.
  const [, text = ''] = section.split(/\n#{2,3} /)[0]?.split(/^Acts: .*$/m) ?? []
  return { ...factsOf(code), text: text.trim().replaceAll(/\[([^\]]*)\]\(([^)]*)\)/g, withAbsoluteLink) }
}

/** Links to other errors are their codes; other links of the page are relative to it. */
function withAbsoluteLink(_link: string, label: string, target: string): string {
  if (target.startsWith('#')) return label
  return `${label} (${new URL(target, DOCS_URL).href})`
}

function toText({ code, message, source, retryable, closeCode, status, text, docs }: Explanation, terminal: Terminal) {
  const { stdout, env } = terminal
  const facts = [
    `${source} acts`,
    retryable ? 'retryable' : 'not retryable',
    ...(closeCode === undefined ? [] : [`close code ${closeCode}`]),
    ...(status === undefined ? [] : [`HTTP status ${status}`]),
  ]
  const title = paint(code, 'bold', stdout, env)
  return `${title}: ${message}\n${paint(facts.join(', '), 'dim', stdout, env)}\n\n${text}\n\n${docs}\n`
}
