export { type ServeTabsOptions, serveTabs } from './serve-tabs.js'
export { type SharedTabs, type SharedTabsOptions, sharedTabs, type TabsStatus } from './shared-tabs.js'
