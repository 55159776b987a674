import { readFileSync } from 'node:fs'

export type Tone = 'good' | 'bad' | 'doubtful' | 'best'

/** Plain text, possibly with a colour. */
export type PageText = string | { readonly text: string; readonly small?: string; readonly tone?: Tone | undefined }

/** A table; the first column names the row. */
export interface PageTable {
  readonly summary?: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly PageText[])[]
}

export interface PagePlot {
  readonly title: string
  readonly xLabel: string
  readonly x: readonly number[]
  /** Names of the places of `x`, which are then 0, 1, 2, …. */
  readonly xNames?: readonly string[]
  /** The only labels of the horizontal axis. */
  readonly xTicks?: readonly { readonly at: number; readonly label: string }[]
  readonly kind: 'line' | 'bars' | 'dense'
  /** Distance by ratio, where a linear axis would hide small values. */
  readonly isLogX: boolean
  readonly isLogY: boolean
  readonly series: readonly PageSeries[]
  /** Marked spans of the horizontal axis. */
  readonly bands?: readonly { readonly label: string; readonly from: number; readonly to: number }[]
}

/** One line, with a value for each `x`. */
export interface PageSeries {
  readonly name: string
  /** `percent`: shares from 0 to 1. */
  readonly format?: 'percent'
  readonly values: readonly (number | null)[]
  /** Range of the repeats at each `x`. */
  readonly ranges?: readonly (readonly [low: number, high: number] | null)[]
  /** Whether a value is not reliable; its marker is then hollow. */
  readonly isDoubtful?: readonly boolean[]
}

export interface PageSection {
  readonly title: string
  readonly text?: string
  readonly command?: string
  readonly list?: readonly PageText[]
  readonly plots?: readonly PagePlot[]
  readonly tables?: readonly PageTable[]
  readonly facts?: readonly { readonly label: string; readonly value: string }[]
}

/** A number that is read first. */
export interface PageFigure {
  readonly value: string
  readonly label: string
  readonly small?: string
}

/** What a page shows: plain text and numbers, no markup. */
export interface PageContent {
  readonly title: string
  readonly subtitle: string
  /** Stands above all: whether the figures can be trusted. */
  readonly verdict: { readonly text: string; readonly small: string; readonly tone: Tone }
  /** The first one is the largest. */
  readonly figures: readonly PageFigure[]
  readonly sections: readonly PageSection[]
}

/** From this ratio of largest to smallest on, a linear axis would hide the small values. */
const LOG_FROM_RATIO = 8

/** Whether an axis of these values is logarithmic. A zero needs a linear axis, whatever the ratio of the others. */
export function isLog(values: readonly (number | null)[]): boolean {
  const numbers = values.filter((value) => value !== null)
  const least = Math.min(...numbers)
  return least > 0 && Math.max(...numbers) / least >= LOG_FROM_RATIO
}

/**
 * The content as one page that opens offline: `report.html` with uPlot and the content in it. The page writes every text
 * as text, and its content security policy lets it load nothing.
 */
export function pageText(content: PageContent): string {
  const json = JSON.stringify(content).replaceAll('<', String.raw`\u003c`)
  const parts: Readonly<Record<string, string>> = {
    '/*uplot.css*/': textOf(import.meta.resolve('uplot/dist/uPlot.min.css')),
    '/*uplot.js*/': textOf(import.meta.resolve('uplot/dist/uPlot.iife.min.js')),
    '"{{content}}"': json,
  }
  const template = textOf(new URL('../../report.html', import.meta.url))
  return Object.entries(parts).reduce((page, [mark, part]) => page.replace(mark, () => part), template)
}

function textOf(url: string | URL): string {
  return readFileSync(new URL(url), 'utf8')
}
