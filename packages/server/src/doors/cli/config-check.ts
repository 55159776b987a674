import { isKey, matches, WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { historyRulesOf, parseHistoryRule } from '../../kernel/ports/history-rules.js'
import { parseOverflowRule } from '../../kernel/ports/overflow-rules.js'
import { isReserved } from '../../kernel/ports/reserved-keys.js'
import { resolveOptions, withoutSecrets } from '../options/options.js'
import { warningsOf } from '../options/rules.js'
import { type ResolvedOptions, type ServerOptions, tlsFilesOf } from '../options/server-options.js'
import { optionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { EXIT } from './exit-codes.js'
import type { NamedSource } from './option-flags.js'
import { mergeSources, unknownVariables } from './option-sources.js'
import { note, printable, type Terminal, warn } from './terminal.js'

export interface CheckFlags {
  readonly json?: boolean
  readonly strict?: boolean
}

interface EffectiveOption {
  readonly name: string
  /** Hidden if it is secret. */
  readonly value: unknown
  /** `default`, or the source. */
  readonly source: string
}

/**
 * Checks the options as a start would, without one: reads all sources and the certificates, and prints what results.
 *
 * @param read Reads the sources; its errors are the result of the check.
 * @param exposed Tells of secrets that others on this machine can see.
 * @returns The exit code: `USAGE` if the options are not valid, `FAILED` for warnings with `strict`.
 */
export async function configCheck(
  read: () => readonly NamedSource[],
  { json = false, strict = false }: CheckFlags,
  terminal: Terminal,
  exposed: () => readonly string[],
): Promise<number> {
  const { stdout, env } = terminal
  try {
    const sources = read()
    const resolved = resolveOptions(mergeSources(sources.map(({ values }) => values)))
    const options = effectiveOptions(resolved, sources)
    const ofFiles = [...exposed(), ...(await certificateProblems(resolved))]
    const warnings = [...unknownVariables(env), ...warningsOf(resolved), ...ofFiles]
    if (json) stdout.write(`${JSON.stringify({ valid: true, options, warnings }, null, 2)}\n`)
    else {
      stdout.write(options.map(lineOf).join(''))
      for (const warning of warnings) warn(printable(warning), terminal)
      if (!sources.some(({ isFile }) => isFile)) note('no config file was read; --config names one', terminal)
      note(`the options are valid; warnings: ${warnings.length}`, terminal)
    }
    return strict && warnings.length > 0 ? EXIT.FAILED : EXIT.OK
  } catch (error) {
    if (!json || !(error instanceof WebMQError)) throw error
    const { code, message, docs } = error
    stdout.write(`${JSON.stringify({ valid: false, error: { code, message, docs } }, null, 2)}\n`)
    return EXIT.USAGE
  }
}

function effectiveOptions(resolved: ResolvedOptions, sources: readonly NamedSource[]): readonly EffectiveOption[] {
  const shown = withoutSecrets(resolved)
  return OPTIONS.flatMap(({ name }) => {
    const value = optionValue(shown, name)
    if (value === undefined) return []
    return [{ name, value, source: sourceOf(name, sources) }]
  })
}

function sourceOf(option: string, sources: readonly NamedSource[]): string {
  return sources.find(({ values }) => values.has(option))?.name ?? 'default'
}

function lineOf({ name, value, source }: EffectiveOption): string {
  return `${name.padEnd(31)} ${printable(JSON.stringify(value))}${source === 'default' ? '' : `  (${printable(source)})`}\n`
}

/** @throws {WebMQError} `E_OPTION_INVALID`: a file of a certificate cannot be used. */
async function certificateProblems({ tls }: ResolvedOptions): Promise<readonly string[]> {
  if (tls === undefined) return []
  const { readCertificate } = await import('../../features/certificates/read-certificate.js')
  const { certificateWarnings } = await import('../../features/certificates/read-certificate.js')
  const certificates = await Promise.all(tlsFilesOf(tls).map(readCertificate))
  return certificates.flatMap((certificate) => certificateWarnings(certificate, Date.now()))
}

export function configPrint(options: ServerOptions, terminal: Terminal): void {
  const resolved = resolveOptions(options)
  for (const warning of [...unknownVariables(terminal.env), ...warningsOf(resolved)]) warn(warning, terminal)
  terminal.stdout.write(`${JSON.stringify(withoutSecrets(resolved), null, 2)}\n`)
}

/**
 * Prints which rules hold for a key, and where each comes from. Of each option the first rule that fits holds.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function configExplain(key: string, sources: readonly NamedSource[], isJson: boolean, terminal: Terminal): void {
  if (!isKey(key) || isReserved(key)) throw invalidOption(`${key}: not a key of messages, such as chat.42.message`)
  const options = resolveOptions(mergeSources(sources.map(({ values }) => values)))
  const { history, retain, meta, overflow, urgent } = options
  const logged = historyRulesOf(options, options.broker === 'memory').ruleOf(key)
  const unlisted = logged === undefined ? 'not logged' : `logged, as ${logged.pattern}=${logged.maxMessages}`
  const first = (rules: readonly string[], patternOf: (rule: string) => string | undefined = (rule) => rule) =>
    rules.find((rule) => matches(patternOf(rule) ?? '', key))
  const rules = [
    { name: 'history', rule: first(history, (rule) => parseHistoryRule(rule)?.pattern), otherwise: unlisted },
    { name: 'retain', rule: first(retain), otherwise: 'not retained' },
    { name: 'meta', rule: first(meta), otherwise: 'tells no publisher' },
    { name: 'overflow', rule: first(overflow, (rule) => parseOverflowRule(rule)?.pattern), otherwise: 'disconnect' },
    { name: 'urgent', rule: first(urgent), otherwise: 'may wait for flushIntervalMs' },
  ].map(({ name, rule, otherwise }) => ({
    name,
    rule: rule ?? null,
    effect: rule ?? otherwise,
    source: rule === undefined ? 'no rule' : sourceOf(name, sources),
  }))
  if (isJson) terminal.stdout.write(`${JSON.stringify({ key, rules }, null, 2)}\n`)
  else {
    const lines = rules.map(({ name, effect, source }) => `${name.padEnd(10)}${printable(`${effect}  (${source})`)}\n`)
    terminal.stdout.write(lines.join(''))
  }
}
