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
  const rows = sizes.map(
    ({ name, packages, bytes, seconds }) =>
      `| \`npm install ${name}\` | ${packages} | ${(bytes / 1e6).toFixed(1)} MB | ${seconds.toFixed(1)} s |`,
  )
  return ["| installation | packages | on disk | time, from npm's cache |", '| --- | --- | --- | --- |', ...rows].join(
    '\n',
  )
}

function checkTable(results) {
  const rows = results.map(
    ({ name, state, note }) => `| ${name} | ${state} | ${note.split('\n')[0].replaceAll('|', '\\|')} |`,
  )
  return ['| check | result | what it says |', '| --- | --- | --- |', ...rows].join('\n')
}
