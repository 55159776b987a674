/** A run, or a part of it, as rows over time. */
export interface Timeline {
  /** What was not kept, for the reader and for screen readers. */
  readonly title: string
  readonly fromMs: number
  readonly untilMs: number
  readonly rows: readonly TimelineRow[]
  /** Messages on their way from row to row. */
  readonly arrows: readonly Arrow[]
}

export interface TimelineRow {
  readonly name: string
  /** Not the row of the violation: it stands back. */
  readonly isFaint: boolean
  /** It is the row of this node: its colour is that of connections to it. */
  readonly node?: number
  readonly spans: readonly RowSpan[]
  readonly marks: readonly Mark[]
}

export interface RowSpan {
  readonly fromMs: number
  readonly untilMs: number
  readonly kind: 'connection' | 'stall' | 'fault'
  /** Of the node of a connection. */
  readonly node?: number
  readonly label?: string
}

export interface Mark {
  readonly atMs: number
  readonly kind: 'publish' | 'unsettled' | 'delivery' | 'replay' | 'gap' | 'recovered' | 'missed' | 'wrong'
  /** Shown when it is pointed at. */
  readonly title: string
  /** Written beside it. */
  readonly label?: string
}

export interface Arrow {
  readonly from: { readonly row: number; readonly atMs: number }
  readonly to: { readonly row: number; readonly atMs: number }
  readonly isMissed: boolean
}

/** More marks than this in a row show nothing, and make a page large. */
const MAX_MARKS_PER_ROW = 400
export const MAX_ARROWS = 400

/** The marks of a row within a time; of too many, those that are nearest to what it is about. */
export function marksWithin(marks: readonly Mark[], fromMs: number, untilMs: number, focusMs: number): Mark[] {
  const within = marks.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs)
  if (within.length <= MAX_MARKS_PER_ROW) return within
  return within
    .sort((one, other) => Math.abs(one.atMs - focusMs) - Math.abs(other.atMs - focusMs))
    .slice(0, MAX_MARKS_PER_ROW)
}

/** The part of a span within a time, if there is one. */
export function clipped(span: RowSpan, fromMs: number, untilMs: number): RowSpan[] {
  if (span.untilMs < fromMs || span.fromMs > untilMs) return []
  return [{ ...span, fromMs: Math.max(fromMs, span.fromMs), untilMs: Math.min(untilMs, span.untilMs) }]
}
