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

/** What did not pass, and how many checks did. */
function checkTable(results) {
  const failed = results.filter(({ state }) => state !== 'pass')
  const rows = failed.map(
    ({ name, state, note }) => `| ${name} | **${state}** ${note.split('\n')[0].replaceAll('|', '\\|')} |`,
  )
  const passed = `${results.length - failed.length} checks passed.`
  return failed.length === 0 ? passed : ['| check | what it says |', '| --- | --- |', ...rows, '', passed].join('\n')
}
