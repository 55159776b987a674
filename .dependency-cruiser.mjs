// The dependency rule of ARCHITECTURE.md, checked by `npm run lint`.
import { readFileSync } from 'node:fs'

const TESTS = '\\.test(-d)?\\.ts$|/test/|/fuzz/'

/** Rooms of each package from the top floor to the ground: a room imports only from the floors below its own. */
export const FLOORS = {
  server: [
    ['doors/cli', 'index'],
    ['create-server'],
    ['doors/in-process'],
    ['doors/metrics'],
    ['kernel/node'],
    [
      ...['features/hooks', 'features/operators', 'features/outbox', 'features/presence', 'features/queue-groups'],
      'features/streams',
    ],
    ['doors/sse', 'features/feature'],
    ['doors/http', 'kernel/session'],
    ['doors/options', 'kernel/publishing'],
    ['adapters/brokers', 'features/observing', 'kernel/routing'],
    [
      ...['adapters/transports', 'features/certificates', 'features/nodes', 'kernel/identity', 'kernel/patterns'],
      'kernel/replay',
    ],
    ['kernel/ports'],
    ['kernel/base'],
  ],
  client: [
    ['development'],
    ['index', 'dev/checks', 'dev/devtools', 'dev/testing', 'dev/vite'],
    ['frameworks/react', 'frameworks/svelte', 'frameworks/vue'],
    ['frameworks/native', 'frameworks/stores'],
    ['parts/index'],
    ['parts/ai', 'parts/schema', 'parts/yjs'],
    ['parts/stream'],
    [
      ...['parts/concurrency', 'parts/history', 'parts/iterate', 'parts/latest', 'parts/load', 'parts/msgpack'],
      ...['parts/outbox', 'parts/presence', 'parts/requests', 'parts/resume', 'parts/sse', 'parts/state', 'parts/tabs'],
    ],
    ['core/of-client'],
    ['core/default-instance'],
    ['core/client'],
    ['core/client-part', 'core/topics'],
    ['core/listening'],
    ['core/publishing'],
    ['core/connection', 'core/types'],
    ['core/events'],
    ['core/options'],
    ['core/checks'],
    ['core/client-options'],
    ['protocol'],
  ],
  bench: [
    ['main'],
    ['cli'],
    ['scenarios'],
    ['trials'],
    ['deployment'],
    ['run-progress', 'server-node'],
    ['report'],
    ['results'],
    ['backends'],
    ['generator', 'options', 'scenario', 'targets'],
    ['brokers', 'loadgen', 'measure'],
    ['parts'],
    ['missing-package', 'progress'],
    ['exit-codes', 'interrupt', 'load'],
  ],
  check: [
    ['main'],
    ['cli', 'systems'],
    ['options', 'targets', 'visiting'],
    ['report'],
    ['playing'],
    ['actors'],
    ['judging'],
    ['exit-codes'],
  ],
}

const inRooms = (name, rooms) => `^packages/${name}/src/(${rooms.join('|')})(/|\\.ts$)`

/** No arrow goes up, or across to a neighbour. */
const floorRules = Object.entries(FLOORS).flatMap(([name, floors]) =>
  floors.flatMap((floor, height) =>
    floor.map((room) => ({
      name: `${name}-${room}-imports-only-from-floors-below`,
      severity: 'error',
      from: { path: inRooms(name, [room]), pathNot: TESTS },
      to: { path: inRooms(name, floors.slice(0, height + 1).flat()), pathNot: inRooms(name, [room]) },
    })),
  ),
)

/** Files in circles that are there today: `test/house.test.ts` lets the list only shrink. */
const CIRCLES = JSON.parse(readFileSync(new URL('test/imports.json', import.meta.url), 'utf8')).circles
const inListedCircles = CIRCLES.flatMap((circle) => circle.split(' ')).map((file) => `^${file.replaceAll('.', '\\.')}$`)

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...floorRules,
    {
      name: 'no-circles',
      comment: 'A circle means that two files are one. A type goes to the file that owns the word.',
      severity: 'error',
      from: { pathNot: inListedCircles },
      to: { circular: true },
    },
    {
      name: 'no-circles-at-run-time',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'protocol-stands-alone',
      comment: 'client/protocol imports nothing but itself.',
      severity: 'error',
      from: { path: '^packages/client/src/protocol/', pathNot: TESTS },
      to: { pathNot: '^packages/client/src/protocol/' },
    },
    {
      name: 'the-client-imports-no-barrel',
      comment: 'Bundlers put a module that two chunks may reach through it into the code that every page loads.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: TESTS },
      to: { path: '^packages/client/src/protocol/index\\.ts$' },
    },
    {
      name: 'client-has-no-dependencies',
      comment: 'The client runs in browsers and has zero dependencies.',
      severity: 'error',
      from: {
        path: '^packages/client/src/',
        pathNot: `^packages/client/src/(dev/vite|frameworks/(react|svelte|vue)|parts/(ai|msgpack|yjs))/|${TESTS}`,
      },
      to: { pathNot: '^packages/client/src/' },
    },
    {
      name: 'hooks-have-their-framework-and-no-more',
      comment: 'Frameworks are optional peers, each imported by the entry of its name alone.',
      severity: 'error',
      from: { path: '^packages/client/src/frameworks/(react|svelte|vue)/', pathNot: TESTS },
      to: { pathNot: '^packages/client/src/|/node_modules/(@types/)?$1/' },
    },
    {
      name: 'the-plugin-has-node-and-no-more',
      comment: 'It runs in the dev server, and names no type of Vite.',
      severity: 'error',
      from: { path: '^packages/client/src/dev/vite/', pathNot: TESTS },
      to: { dependencyTypesNot: ['core'], pathNot: '^packages/client/src/dev/vite/' },
    },
    {
      name: 'a-codec-has-its-library-and-no-more',
      comment: 'msgpackr is an optional peer, imported by webmq-client/msgpack alone.',
      severity: 'error',
      from: { path: '^packages/client/src/parts/msgpack/', pathNot: TESTS },
      to: { pathNot: '^packages/client/src/|/node_modules/msgpackr/' },
    },
    {
      name: 'the-provider-has-yjs-and-no-more',
      comment: 'yjs and y-protocols are optional peers, imported by webmq-client/yjs alone.',
      severity: 'error',
      from: { path: '^packages/client/src/parts/yjs/', pathNot: TESTS },
      to: { pathNot: '^packages/client/src/|/node_modules/(yjs|y-protocols)/' },
    },
    {
      name: 'nobody-imports-a-codec',
      comment: 'Whoever does not want a codec must not get its library.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: `^packages/client/src/parts/msgpack/|${TESTS}` },
      to: { path: '^packages/client/src/parts/msgpack/' },
    },
    {
      name: 'server-uses-only-the-protocol-of-the-client',
      severity: 'error',
      comment: 'But for the commands that are clients, which import it lazily.',
      from: { path: '^packages/server/src/', pathNot: `^packages/server/src/doors/cli/client/|${TESTS}` },
      to: { path: '^packages/(client|bench|conformance|services)/', pathNot: '^packages/client/(src|dist)/protocol/' },
    },
    {
      name: 'one-file-names-the-features',
      comment: 'kernel/node/features.ts alone imports their rows; the kernel reads them from its table (ADR 78).',
      severity: 'error',
      from: { path: '^packages/server/src/', pathNot: `^packages/server/src/kernel/node/features\\.ts$|${TESTS}` },
      to: { path: '^packages/server/src/features/.+/row\\.ts$' },
    },
    {
      name: 'only-the-composition-root-knows-adapters',
      comment: 'create-server.ts alone imports concrete brokers and transports; index.ts exports them.',
      severity: 'error',
      from: {
        path: '^packages/server/src/',
        pathNot: `^packages/server/src/adapters/(brokers|transports)/|^packages/server/src/(create-server|index)\\.ts$|${TESTS}`,
      },
      to: { path: '^packages/server/src/adapters/(brokers|transports)/' },
    },
    {
      name: 'adapters-know-only-their-port',
      comment: 'A broker or a transport imports base, the ports, the patterns, its own files and its own library.',
      severity: 'error',
      from: { path: '^packages/server/src/adapters/(brokers|transports)/', pathNot: TESTS },
      to: {
        path: '^packages/server/src/',
        pathNot: '^packages/server/src/kernel/(base|ports|patterns)/|^packages/server/src/adapters/$1/',
      },
    },
    {
      name: 'an-adapter-knows-no-other-adapter',
      comment: 'A feature is removed by deleting its folder and one line in a table.',
      severity: 'error',
      from: {
        path: '^packages/server/src/adapters/(brokers|transports)/(memory|mesh|native|ws)/',
        pathNot: TESTS,
      },
      to: {
        path: '^packages/server/src/adapters/(brokers|transports)/(memory|mesh|native|ws)/',
        pathNot: '^packages/server/src/adapters/$1/$2/',
      },
    },
    {
      name: 'a-transport-in-a-package-knows-public-faces-alone',
      comment: 'As one of somebody else: the ports, what transports share, the protocol, and its own library.',
      severity: 'error',
      from: { path: '^packages/transport-uws/src/', pathNot: TESTS },
      to: {
        path: '^packages/',
        pathNot:
          '^packages/transport-uws/src/|^packages/server/(src|dist)/(kernel/ports|adapters/transports)/index\\.|^packages/client/(src|dist)/protocol/',
      },
    },
    {
      name: 'a-broker-in-a-package-knows-public-faces-alone',
      comment: 'As one of somebody else: the ports, what brokers share, the protocol, and its own library.',
      severity: 'error',
      from: { path: '^packages/(broker-[^/]+)/src/', pathNot: TESTS },
      to: {
        path: '^packages/',
        pathNot:
          '^packages/$1/src/|^packages/server/(src|dist)/(kernel/ports|adapters/brokers)/index\\.|^packages/client/(src|dist)/protocol/',
      },
    },
    {
      name: 'an-outbox-in-a-package-knows-public-faces-alone',
      comment: 'As one of somebody else: the contract, the protocol, and its own library.',
      severity: 'error',
      from: { path: '^packages/(outbox-[^/]+)/src/', pathNot: TESTS },
      to: {
        path: '^packages/',
        pathNot:
          '^packages/$1/src/|^packages/server/(src|dist)/features/outbox/index\\.|^packages/client/(src|dist)/protocol/',
      },
    },
    {
      name: 'services-stand-alone',
      comment:
        'They start real brokers for tests and benches: Node, testcontainers when it is there, a maker of certificates.',
      severity: 'error',
      from: { path: '^packages/services/src/', pathNot: TESTS },
      to: {
        dependencyTypesNot: ['core'],
        pathNot: '^packages/services/src/|/node_modules/(testcontainers|selfsigned)/',
      },
    },
    {
      name: 'the-suites-know-only-the-ports',
      comment: 'A broker or a transport of somebody else passes the same suites.',
      severity: 'error',
      from: { path: '^packages/conformance/src/', pathNot: `${TESTS}|^packages/conformance/src/client/` },
      to: {
        path: '^packages/',
        pathNot: '^packages/conformance/|^packages/(server/(src|dist)/kernel/ports|client/(src|dist)/protocol)/',
      },
    },
    {
      name: 'native-is-the-bottom',
      severity: 'error',
      from: { path: '^packages/native/' },
      to: { path: '^packages/(client|server|bench|conformance|services|transport-uws|(broker|outbox)-[^/]+)/' },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: { pathNot: TESTS },
      to: { couldNotResolve: true, pathNot: '^uWebSockets\\.js$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules|^packages/[^/]+/dist/' },
    exclude: { path: '(^|/)target/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'default'],
      extensions: ['.ts', '.js', '.mjs'],
    },
  },
}
