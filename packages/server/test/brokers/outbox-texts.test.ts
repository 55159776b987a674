import { expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../outbox-postgres/test/database.js'
import { House } from '../texts/house.js'
import { comparison, MAX_DEPTH, TEXTS } from '../texts/texts.js'

// The transaction of an application failed on half a character, and numbers of others were rewritten: what PostgreSQL takes as
// JSON is published byte for byte, and what it does not take is no message.

const REFUSED = 'refused by the database'

it('publishes each text of a row that the database takes, as it was inserted', async () => {
  const { url, client } = await freshDatabase()
  const house = await House.open({ outbox: { url } })
  onTestFinished(() => house.close())
  const cells: Record<string, string> = {}
  const wanted: Record<string, string> = {}
  for (const text of TEXTS) {
    const key = house.key('row')
    const outcome = await client
      .query(`INSERT INTO webmq_outbox (key, payload) VALUES ($1, convert_from($2::bytea, 'UTF8')::json)`, [
        key,
        text.bytes,
      ])
      .then(
        async () => comparison(text, await house.arrived(key)),
        () => REFUSED,
      )
    cells[text.name] = `${outcome}${await house.harm()}`
    // Its own stack is the limit of its parser.
    const allowed = !text.isJson ? [REFUSED] : text.depth > 10 * MAX_DEPTH ? [REFUSED, 'as written'] : ['as written']
    wanted[text.name] = allowed.includes(cells[text.name] ?? '') ? (cells[text.name] ?? '') : allowed.join(' or ')
  }
  expect(cells).toEqual(wanted)
})

it('publishes the bytes of a row as they are', async () => {
  const { url, client } = await freshDatabase()
  const house = await House.open({ outbox: { url } })
  onTestFinished(() => house.close())
  const cells: Record<string, string> = {}
  for (const text of TEXTS) {
    const key = house.key('row')
    await client.query('INSERT INTO webmq_outbox (key, bytes) VALUES ($1, $2)', [key, text.bytes])
    cells[text.name] = `${comparison(text, await house.arrived(key))}${await house.harm()}`
  }
  expect(cells).toEqual(Object.fromEntries(TEXTS.map(({ name }) => [name, 'as written'])))
})
