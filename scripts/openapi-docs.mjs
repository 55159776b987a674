// `npm run docs:openapi`: writes docs/openapi.json from the table of routes. The server must be compiled.
import { writeFileSync } from 'node:fs'
import { openApiDocument } from '../packages/server/dist/doors/http/api/openapi.js'
import { run } from './lib/steps.mjs'

const FILE = 'docs/openapi.json'

writeFileSync(FILE, JSON.stringify(openApiDocument(), undefined, 2))
const { exitCode, output } = await run('npx', ['biome', 'format', '--write', FILE], { log: 'openapi-docs' })
if (exitCode !== 0) process.stderr.write(output)
process.exitCode = exitCode
