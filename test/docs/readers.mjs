// Who runs which block of the pages. test/docs/accounts.test.ts demands that every block has a reader here, or a reason.
import { blocksOf, pages } from './page-blocks.mjs'

const isOn =
  (...names) =>
  ({ page }) =>
    names.includes(page)
const named =
  (...names) =>
  (block) =>
    block.name !== undefined && isOn(...names)(block)

const isOfApplication = ({ page, name }) => page.startsWith('docs/with/') && name !== undefined
/** Of a framework that a project installs, builds and runs: `npm run test:packages`. */
const inProjectOnly = ({ name }) => /^(page|nest|next|nuxt|sveltekit|django|fastapi|ruby-rails|php-routes)\b/.test(name)

/** Files that read blocks to run, compile or parse them: a test, or a check of `npm run test:packages`. */
export const READERS = {
  'test/docs/compile.test.ts': ({ page, language }) =>
    ['ts', 'tsx'].includes(language) && page !== 'docs/with/javascript.md',
  'test/docs/data.test.ts': ({ language }) => language === 'json' || language === 'yaml',
  'test/docs/commands.test.ts': ({ page, language, name }) =>
    page === 'docs/operations.md' && language === 'sh' && name !== undefined,
  'test/docs/shell.test.ts': ({ language, name, page }) =>
    language === 'sh' &&
    name === undefined &&
    page !== 'docs/first-app.md' &&
    /^(README|docs|packages\/(client|server|transport-uws|(broker|outbox)-\w+)\/)/.test(page),
  'test/docs/tool-commands.test.ts': ({ language, notRun }) => language === 'sh' && notRun.length > 0,
  'packages/server/test/brokers/outbox-docs.test.ts': named(
    'docs/database-outbox.md',
    'packages/outbox-postgres/README.md',
  ),
  'packages/server/test/brokers/redis-publish-script.test.ts': ({ page, name }) =>
    page === 'packages/broker-redis/README.md' && name === 'publish-script',
  'test/docs/python.test.ts': named('clients/python/README.md'),
  'test/docs/snippets.test.ts': (block) =>
    block.language === 'mermaid' ||
    named(
      'packages/services/README.md',
      'docs/client/svelte.md',
      'docs/protocol.md',
      'packages/server/README.md',
    )(block) ||
    (block.page === 'docs/running-brokers.md' && block.name === 'payload'),
  'test/clients/go-package.test.ts': ({ page, language }) => page === 'clients/go/README.md' && language === 'go',
  'test/docs/hooks.test.ts': named('docs/hooks.md'),
  'test/docs/http-api.test.ts': (block) =>
    block.language !== 'js' && named('docs/http-api.md', 'docs/sse.md', 'docs/streams.md')(block),
  'test/docs/operations.test.ts': ({ page, name }) => page === 'docs/operations.md' && name === 'reload',
  'test/docs/recipes.test.ts': (block) =>
    named('docs/client/recipes.md', 'docs/client/outbox.md')(block) ||
    (named('docs/sse.md')(block) && block.language === 'js'),
  'test/docs/with.test.ts': (block) => isOfApplication(block) && !inProjectOnly(block),
  'test/packages/checks/frameworks.mjs': (block) => isOfApplication(block) && !block.name.startsWith('go'),
  'test/packages/checks/first-app.mjs': isOn('docs/first-app.md'),
  'test/packages/checks/proxies.mjs': named('docs/client/proxy.md'),
  'test/packages/checks/react-native.mjs': named('docs/client/react-native.md'),
  'test/packages/checks/release.mjs': ({ page, name }) => page === 'docs/releasing.md' && name === 'undo',
  'test/verify-release.test.ts': ({ page, name }) => page === 'docs/releasing.md' && name === 'verify',
}

let blocks
const readers = new Map()

/** All blocks of all pages. */
export function allBlocks() {
  blocks ??= pages().flatMap((page) => blocksOf(page))
  return blocks
}

/** What a file of `READERS` may read. It marks what was read. */
export function readerOf(file) {
  const reader = readers.get(file) ?? createReader(file)
  readers.set(file, reader)
  return reader
}

function createReader(file) {
  const claims = READERS[file]
  if (claims === undefined) throw new TypeError(`${file} is not in READERS of test/docs/readers.mjs`)
  const unread = new Set(allBlocks().filter(claims))
  const all = [...unread]
  const examples = (wanted) => {
    const found = all.filter(wanted)
    for (const block of found) unread.delete(block)
    return found
  }
  const onPage = (page) => (block) => block.page === page || block.page === `docs/${page}`
  return {
    examples: (wanted = () => true) => examples(wanted),
    examplesOf: (page, language) =>
      examples((block) => onPage(page)(block) && block.name && language === (language && block.language)),
    exampleOf(page, name) {
      const [found] = examples((block) => onPage(page)(block) && block.name === name)
      if (found === undefined) throw new TypeError(`${page} has no example ${name} that ${file} may read`)
      return found
    },
    unread: () => [...unread].map(({ page, line }) => `${page}:${line}`),
  }
}
