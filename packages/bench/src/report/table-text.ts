import { cellOf, type ResultColumn, type ResultRow } from '../results/result.js'
import { formatCell } from './format-cell.js'

const GAP = '  '
/** Width when standard output is not a terminal. */
const DEFAULT_WIDTH = 160

/**
 * The rows as aligned text. A wide table is split into several below each other, each with the columns that identify a
 * row. Columns without a measurement are left out.
 * @param width Characters per line; at least one column beside the identity is printed.
 */
export function tableText(
  columns: readonly ResultColumn[],
  identity: readonly string[],
  rows: readonly ResultRow[],
  width = DEFAULT_WIDTH,
): string {
  const cellsOf = (column: ResultColumn) =>
    paddedColumn(
      column.title,
      rows.map((row) => formatCell(cellOf(row, column.key), column.format)),
      column.format === 'text',
    )
  const measured = columns.filter(({ key }) => rows.some((row) => cellOf(row, key) !== null))
  const fixed = measured.filter(({ key }) => identity.includes(key)).map(cellsOf)
  const others = measured.filter(({ key }) => !identity.includes(key)).map(cellsOf)

  const blocks: string[][][] = [[...fixed]]
  for (const column of others) {
    const block = blocks.at(-1) ?? []
    const isFull = block.length > fixed.length && widthOf([...block, column]) > width
    if (isFull) blocks.push([...fixed, column])
    else block.push(column)
  }
  return blocks.map(joinedColumns).join('\n\n')
}

function widthOf(block: readonly (readonly string[])[]): number {
  return block.reduce((sum, [head = '']) => sum + head.length + GAP.length, -GAP.length)
}

/** The title and cells of a column, all of one width. */
export function paddedColumn(title: string, cells: readonly string[], isLeft: boolean): string[] {
  const texts = [title, ...cells]
  const chars = Math.max(...texts.map((text) => text.length))
  return texts.map((text) => (isLeft ? text.padEnd(chars) : text.padStart(chars)))
}

/** Columns beside each other, with a rule below their titles. @param columns As made by {@link paddedColumn}. */
export function joinedColumns(columns: readonly (readonly string[])[]): string {
  const lineCount = columns[0]?.length ?? 0
  const line = (index: number) =>
    columns
      .map((column) => column[index] ?? '')
      .join(GAP)
      .trimEnd()
  const rule = columns.map(([head = '']) => '-'.repeat(head.length)).join(GAP)
  return [line(0), rule, ...Array.from({ length: lineCount - 1 }, (_, index) => line(index + 1))].join('\n')
}
