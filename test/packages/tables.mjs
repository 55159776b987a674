const MARKS = ['<!-- tables of npm run test:packages -->', '<!-- end of the tables -->']

/** The document with tables of an outcome between its marks. */
export function withTables(document, { results, sizes, packed }) {
  const [start, end] = MARKS.map((mark) => document.indexOf(mark))
  if (start === -1 || end < start) throw new Error(`the document has no ${MARKS.join(' and ')}`)
  const tables = [
    sizeTable(sizes),
    checkTable(results),
    `Published: ${packed.map(({ name }) => `\`${name}\``).join(', ')}.`,
  ]
  return `${document.slice(0, start + MARKS[0].length)}\n\n${tables.join('\n\n')}\n\n${document.slice(end)}`
}

function sizeTable(sizes) {
  const managers = Object.keys(sizes[0].seconds)
  const rows = sizes.map(({ name, packages, bytes, seconds }) => [
    `\`${name}\``,
    packages,
    `${(bytes / 1e6).toFixed(1)} MB`,
    ...managers.map((manager) => `${seconds[manager].toFixed(1)} s`),
  ])
  const header = ['package', 'packages installed', 'on disk', ...managers]
  return [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** A check that has passed says only its note; versions of Node that say the same share a row. */
function checkTable(results) {
  const versions = new Map()
  for (const { name, state, note } of results) {
    const [, version, rest = name] = /^Node (\d+): (.*)$/.exec(name) ?? []
    const said = `${state === 'pass' ? '' : `**${state}** `}${note.split('\n')[0].replaceAll('|', '\\|')}`
    const row = `${rest} | ${said} |`
    versions.set(row, [...(versions.get(row) ?? []), ...(version === undefined ? [] : [version])])
  }
  const rows = [...versions].map(([row, of]) => `| ${of.length === 0 ? '' : `Node ${of.join(', ')}: `}${row}`)
  return ['| check, passed unless it says otherwise | what it says |', '| --- | --- |', ...rows].join('\n')
}
