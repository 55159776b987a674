/** Number of styles; the style sheet has a colour for each. */
const LOOK_COUNT = 8

/** Shapes that distinguish series without colour. Paths around 0,0, about 7 units wide. */
const SHAPES: readonly string[] = [
  'M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z',
  'M-3-3h6v6h-6Z',
  'M0-4.4L4.4 0L0 4.4L-4.4 0Z',
  'M0-4L3.9 3.1H-3.9Z',
  'M0 4L3.9-3.1H-3.9Z',
  'M-3.8-1.3h2.5v-2.5h2.6v2.5h2.5v2.6h-2.5v2.5h-2.6v-2.5h-2.5Z',
  'M-2-3.8H2L4 0L2 3.8H-2L-4 0Z',
  'M-1.4-4h2.8v8h-2.8Z',
]

/** The marker of the n-th style around 0,0, as path data. */
export function markerPath(look: number): string {
  return SHAPES[look % LOOK_COUNT] ?? ''
}

/** The class that gives an element the colour of the n-th style. */
export function lookClass(look: number): string {
  return `s${look % LOOK_COUNT}`
}
