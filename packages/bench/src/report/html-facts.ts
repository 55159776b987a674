import { cellOf, type ResultRecord, type RowVerdict } from '../results/result.js'
import { environmentFacts } from './environment.js'
import { escapeHtml } from './html-escape.js'
import { verdictClass } from './html-table.js'
import { speakOf } from './plot-plan.js'

/** The outcome: how many rows hold, which do not and why, the assertions, the notes. */
export function outcomeSection({ rows, columns, identity, assertions, notes }: ResultRecord): string {
  const counts = new Map<RowVerdict, number>()
  for (const { verdict } of rows) counts.set(verdict, (counts.get(verdict) ?? 0) + 1)
  const summary = [...counts].map(
    ([verdict, count]) => `<span class="${verdictClass(verdict)}">${count} ${escapeHtml(verdict)}</span>`,
  )
  const named = columns.filter(
    ({ key }) => identity.includes(key) && new Set(rows.map((row) => cellOf(row, key))).size > 1,
  )
  const problems = new Map<string, string[]>()
  for (const row of rows.filter(({ verdict }) => verdict !== 'ok')) {
    const reason = row.verdictReason === null ? '' : `: ${escapeHtml(row.verdictReason)}`
    const problem = `<b class="${verdictClass(row.verdict)}">${escapeHtml(row.verdict)}</b>${reason}`
    const name = named.map((column) => speakOf(cellOf(row, column.key), column)).join(', ')
    problems.set(problem, [...(problems.get(problem) ?? []), name === '' ? row.target : name])
  }
  const problemItems = [...problems].map(
    ([problem, names]) => `${problem} <small>(${escapeHtml(names.join('; '))})</small>`,
  )
  const checks = assertions.map(({ text, isMet, actual }) => {
    const label = isMet ? '<b class="good">holds</b>' : '<b class="bad">fails</b>'
    return `${label} ${escapeHtml(text)} <small>(${escapeHtml(String(actual ?? 'nothing measured'))})</small>`
  })
  return [
    '<section id="outcome"><h2>Outcome</h2>',
    `<p>${rows.length} ${rows.length === 1 ? 'row' : 'rows'}: ${summary.join(', ')}</p>`,
    list([...problemItems, ...checks, ...notes.map(escapeHtml)]),
    '</section>',
  ].join('')
}

/** The command, the machine, the versions and every setting. */
export function environmentSection(record: ResultRecord): string {
  const facts = environmentFacts(record).filter(({ key }) => key !== 'command')
  const settings = Object.entries(record.config).map(([key, value]) => ({
    label: key,
    value: Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value),
  }))
  return [
    '<section id="made"><h2>How it was made</h2>',
    `<div class="card"><pre>${escapeHtml(record.command)}</pre></div>`,
    `<h3>Machine and versions</h3>${definitions(facts)}`,
    settings.length === 0 ? '' : `<h3>Settings</h3>${definitions(settings)}`,
    '</section>',
  ].join('')
}

function definitions(facts: readonly { readonly label: string; readonly value: string | undefined }[]): string {
  const rows = facts.map(
    ({ label, value = '' }) => `<div><dt>${escapeHtml(label)}</dt><dd>${escapeHtml(value)}</dd></div>`,
  )
  return `<dl>${rows.join('')}</dl>`
}

/** @param items HTML. */
function list(items: readonly string[]): string {
  return items.length === 0 ? '' : `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`
}
