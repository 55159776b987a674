import { expect, it } from 'vitest'
import { readText } from '../deploy/files.js'
import { checkRow } from './cells.js'
import { PLAYS } from './plays.js'
import { pageRows, STATES } from './table.js'

/** Its broker takes six seconds of CPU time to start: `prometheus.test.ts` has it. */
const COSTLY = 'the broker is blocked: memory alarm of RabbitMQ'

it.each(STATES.filter(({ state }) => state !== COSTLY))('$state', async (row) => {
  await checkRow(row, await PLAYS[row.state]())
})

it('all stand in docs/operations.md', () => {
  const rows = readText('docs/operations.md')
    .split('\n')
    .filter((line) => /^\| [^|`]+ \| (`[1-5]\d\d \w|no answer)/.test(line))
  expect(rows).toEqual(pageRows())
})
