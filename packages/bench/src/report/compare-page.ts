import type { CellComparison, Comparison } from './compare.js'
import { bandText } from './compare-text.js'
import { machineLine } from './environment.js'
import { ratioText } from './fail-on.js'
import { formatCell } from './format-cell.js'
import type { Change } from './noise-band.js'
import { type PageContent, type PageSection, type PageText, pageText, type Tone } from './page.js'
import { madeSection } from './record-page.js'
import { toneOf } from './tone.js'

const TONE_OF: Readonly<Record<Change, Tone | undefined>> = { better: 'good', worse: 'bad', 'within noise': undefined }

/** A comparison as one page: every ratio with its noise band, and how both results were made. */
export function comparePage(comparison: Comparison): string {
  const { before, after } = comparison
  return pageText({
    title: `WebMQ benchmark compared: ${after.scenario}`,
    subtitle: machineLine(after),
    verdict: verdictOf(comparison),
    figures: [],
    sections: [
      outcome(comparison),
      table(comparison),
      ...(before === after ? [] : [madeSection('How the first was made', before)]),
      madeSection(before === after ? 'How it was made' : 'How the second was made', after),
    ],
  })
}

function countsOf({ rows }: Comparison): Record<Change, number> {
  const counts = { better: 0, worse: 0, 'within noise': 0 }
  for (const { cells } of rows) for (const { difference } of cells) if (difference) counts[difference.change] += 1
  return counts
}

function verdictOf(comparison: Comparison): PageContent['verdict'] {
  const { better, worse } = countsOf(comparison)
  const [before, after] = comparison.sides
  const text = worse > 0 ? `${worse} worse` : better > 0 ? `${better} better` : 'within noise'
  const rest = worse > 0 && better > 0 ? ` ${better} are better.` : ''
  return { text, small: `Figures of ${after} against ${before}.${rest}`, tone: worse > 0 ? 'bad' : 'good' }
}

function outcome(comparison: Comparison): PageSection {
  const { rows, sides, onlyBefore, onlyAfter, warnings } = comparison
  const counts = countsOf(comparison)
  const summary = Object.entries(counts).map(([change, count]) => `${count} ${change}`)
  return {
    title: 'Outcome',
    text: `Figures of ${rows.length} ${rows.length === 1 ? 'row' : 'rows'}, ${sides[1]} against ${sides[0]}: ${summary.join(', ')}`,
    list: [
      ...warnings.map((text) => ({ text: `Warning: ${text}`, tone: 'doubtful' as const })),
      ...onlyBefore.map((name) => `Only in ${sides[0]}: ${name}`),
      ...onlyAfter.map((name) => `Only in ${sides[1]}: ${name}`),
    ],
  }
}

function table({ rows, columns }: Comparison): PageSection {
  const measured = columns.filter(({ key }) =>
    rows.some(({ cells }) => cells.some((cell) => cell.column.key === key && cell.difference !== null)),
  )
  return {
    title: 'Ratios',
    text: 'Below each ratio the figures, and where it may lie by chance.',
    tables: [
      {
        head: ['Row', ...measured.map(({ title }) => title), 'Verdict'],
        rows: rows.map(({ name, cells, before, after }) => [
          name,
          ...measured.map(({ key }) => cellText(cells.find((cell) => cell.column.key === key))),
          { text: before === after ? after : `${before} → ${after}`, tone: toneOf(after) },
        ]),
      },
    ],
  }
}

function cellText(cell: CellComparison | undefined): PageText {
  if (cell === undefined || (cell.before === null && cell.after === null)) return '–'
  const { column, before, after, difference } = cell
  return {
    text: difference?.ratio == null ? '–' : ratioText(difference.ratio),
    small: `${formatCell(before, column.format)} → ${formatCell(after, column.format)}; ${bandText(difference)}`,
    tone: difference === null ? undefined : TONE_OF[difference.change],
  }
}
