import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { openApiDocument } from './openapi.js'
import { ROUTES } from './routes.js'
import { STATUSES } from './statuses.js'

/** Statuses of refusals that say them themselves. */
function refusals(): readonly string[] {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!\.test)\.ts$/.test(name),
  )
  const texts = sources.map((name) => readFileSync(`${root}${name}`, 'utf8')).join('\n')
  const found = [...texts.matchAll(/new RequestRefusal\(.*?, (\d{3})(?:, '(E_[A-Z_]+)')?/g)]
  expect(found.length).toBeGreaterThan(20)
  return found.map(([, status, code = 'E_REQUEST_INVALID']) => `${status} ${code}`)
}

const docs = (name: string) => readFileSync(new URL(`../../../../../../docs/${name}`, import.meta.url), 'utf8')

it('is the document in docs/openapi.json', () => {
  // After a change: `node packages/server/dist/doors/cli/main.js openapi > docs/openapi.json`.
  expect(JSON.parse(docs('openapi.json'))).toEqual(JSON.parse(JSON.stringify(openApiDocument())))
})

describe('docs/http-api.md', () => {
  const page = docs('http-api.md')

  it('has every route', () => {
    const missing = Object.values(ROUTES).filter(({ method, path }) => !page.includes(`\`${method} ${path}\``))
    expect(missing.map(({ path }) => path)).toEqual([])
  })

  it('has the status of every error', () => {
    const rows = [...page.matchAll(/^\| (\d{3}) \| (.*?) \|/gm)].flatMap(([, status, codes = '']) =>
      [...codes.matchAll(/E_[A-Z_]+/g)].map(([code]) => `${status} ${code}`),
    )
    const expected = Object.entries(STATUSES).map(([code, status]) => `${status} ${code}`)
    expect([...new Set(rows)].toSorted()).toEqual([...new Set([...expected, ...refusals()])].toSorted())
  })
})
