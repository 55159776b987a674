import { addMissing } from './missing.js'

addMissing()

export {
  type AppModules,
  type AppStateModule,
  appLifecycle,
  type NetInfoModule,
  type NetworkState,
} from './app-lifecycle.js'
