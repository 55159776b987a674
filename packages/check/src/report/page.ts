import { escaped } from './escaped.js'
import type { Failure, Outcome, PromiseRow, Shown } from './outcome.js'
import { STYLE } from './page-style.js'
import { timelineSvg } from './timeline-svg.js'

const number = (value: number) => value.toLocaleString('en')
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
const plural = (count: number, word: string) => `${number(count)} ${word}${count === 1 ? '' : 's'}`
/** `code` in backticks. */
const rich = (text: string) => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')

/** One file: no script, and nothing from elsewhere. */
export function pageOf(outcome: Outcome): string {
  const { target, verdict, failures } = outcome
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${verdict === 'held' ? 'Held' : 'Violated'}: ${escaped(target)}</title>
<style>
${STYLE}</style>
</head>
<body>
<header><h1>webmq-check</h1><p>${escaped(target)}</p></header>
${verdictOf(outcome)}
${figuresOf(outcome)}
${failures.map(failureOf).join('\n')}
${promisesOf(outcome.promises)}
${schedulesOf(outcome)}
${factsOf(outcome)}
</body>
</html>
`
}

function verdictOf({ verdict, promises, schedules }: Outcome): string {
  const broken = promises.filter(({ violations }) => violations > 0)
  const held = promises.filter(({ checks, violations }) => checks > 0 && violations === 0).length
  const seeds = schedules.filter(({ violations }) => violations > 0).map(({ seed }) => seed)
  const of = `${plural(schedules.length, 'schedule')} of random faults, ${number(schedules.reduce((sum, { deliveries }) => sum + deliveries, 0))} deliveries`
  if (verdict === 'held') {
    return `<section class="verdict good"><b>Every promise was kept</b><small>${plural(held, 'promise')} held over ${of}.</small></section>`
  }
  const words = broken.map(({ rule }) => `<code>${escaped(rule)}</code>`).join(', ')
  const where =
    seeds.length === 0 ? '' : ` Seeds ${seeds.slice(0, 20).join(', ')}${seeds.length > 20 ? ' and more' : ''}.`
  return `<section class="verdict bad"><b>${plural(broken.length, 'promise')} not kept</b><small>${words}: over ${of}.${where}</small></section>`
}

function figuresOf({ counts, gaps }: Outcome): string {
  const reasons = Object.entries(gaps).map(([reason, count]) => `${reason} ${number(count)}`)
  const cells = Object.entries(counts).map(([name, value]) => {
    const more = name === 'gaps' && reasons.length > 0 ? `<small>${escaped(reasons.join(', '))}</small>` : ''
    return `<div><dt>${escaped(name)}${more}</dt><dd>${number(value)}</dd></div>`
  })
  return `<dl class="figures">${cells.join('')}</dl>`
}

function failureOf({ seed, theme, isShrunk, steps, violations, schedule }: Failure): string {
  const size = isShrunk ? `shrunk to ${plural(steps.length, 'step')}` : plural(steps.length, 'step')
  return `<section>
<h2>Seed ${seed} <small>${escaped(theme)}, ${size}</small></h2>
${violations.map(shownOf).join('\n')}
${steps.length === 0 ? '<p>No fault is needed for it.</p>' : `<ol>${steps.map((step) => `<li>${escaped(step)}</li>`).join('')}</ol>`}
<details><summary>The schedule as JSON</summary><pre>${escaped(JSON.stringify(schedule, undefined, 1))}</pre></details>
</section>`
}

function shownOf({ rule, promise, text, owner, atMs, count, timeline }: Shown): string {
  const more = count > 1 ? `, and ${plural(count - 1, 'more of its kind').replace(/kinds$/, 'kind')}` : ''
  const picture = timeline === undefined ? '' : `<div class="timeline">${timelineSvg(timeline)}</div>${LEGEND}`
  return `<figure><figcaption><code class="bad">${escaped(rule)}</code> ${rich(promise)}
<small>${escaped(text)}. Seen by ${escaped(owner)} at ${seconds(atMs)}${more}.</small></figcaption>${picture}</figure>`
}

const mark = (kind: string, shape: string, words: string) =>
  `<span><svg viewBox="-9 -9 18 18" class="key"><g class="${kind}">${shape}</g></svg>${words}</span>`
const LEGEND = `<p class="legend">${[
  mark('publish', '<path d="M0 -7V7"/>', 'published'),
  mark('unsettled', '<path d="M0 -7V7"/>', 'refused or unanswered'),
  mark('delivery', '<circle r="3.5"/>', 'delivered'),
  mark('replay', '<circle r="3.5"/>', 'replayed'),
  mark('gap', '<path d="M0 -7L6 0L0 7L-6 0Z"/>', 'gap told'),
  mark('recovered', '<path d="M0 -7L6 4H-6Z"/>', 'recovered'),
  mark('missed', '<circle r="6"/>', 'never came'),
  '<span><i class="fault"></i>fault</span>',
  '<span><i class="stall"></i>does not read</span>',
].join('')}</p>`

function promisesOf(promises: readonly PromiseRow[]): string {
  const judged = promises.filter(({ checks, violations }) => checks > 0 || violations > 0)
  const rows = [...judged]
    .sort((one, other) => other.violations - one.violations)
    .map(
      ({ rule, promise, unless, of, checks, violations }) => `<tr><th><code>${escaped(rule)}</code></th>
<td>${rich(promise)}<small>${rich(unless)}</small></td><td>${number(checks)}<small>${escaped(of)}</small></td>
<td class="${violations > 0 ? 'bad' : 'good'}">${violations > 0 ? number(violations) : 'held'}</td></tr>`,
    )
  const left = promises.filter((row) => !judged.includes(row)).map(({ rule }) => rule)
  const note =
    left.length === 0
      ? ''
      : `<p>Nothing in this run was of ${left.map((rule) => `<code>${escaped(rule)}</code>`).join(', ')}.</p>`
  return `<h2>Promise by promise</h2>
<div class="wide"><table class="data"><thead><tr><th>rule</th><th>promise</th><th>held against</th><th></th></tr></thead><tbody>
${rows.join('\n')}</tbody></table></div>${note}`
}

function schedulesOf({ schedules }: Outcome): string {
  const rows = schedules.map(
    ({
      seed,
      theme,
      publishes,
      deliveries,
      gaps,
      violations,
      tookMs,
    }) => `<tr><th>${seed}</th><td>${escaped(theme)}</td>
${[publishes, deliveries, gaps].map((value) => `<td>${number(value)}</td>`).join('')}<td>${seconds(tookMs)}</td>
<td class="${violations > 0 ? 'bad' : 'good'}">${violations > 0 ? number(violations) : 'held'}</td></tr>`,
  )
  return `<h2>Schedules</h2>
<div class="wide"><table class="data"><thead><tr><th>seed</th><th>theme</th><th>publishes</th><th>deliveries</th><th>gaps</th><th>time</th><th></th></tr></thead><tbody>
${rows.join('\n')}</tbody></table></div>`
}

function factsOf({ facts, command, version, beganAt, tookMs }: Outcome): string {
  const all: (readonly [string, string])[] = [
    ...facts,
    ['began', beganAt],
    ['took', seconds(tookMs)],
    ['webmq-check', version],
  ]
  return `<h2>The run</h2>
<dl class="facts">${all.map(([name, value]) => `<div><dt>${escaped(name)}</dt><dd>${escaped(value)}</dd></div>`).join('')}</dl>
<pre>${escaped(command)}</pre>`
}
