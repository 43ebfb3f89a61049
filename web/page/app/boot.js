/* Before anything else: berth's worker begins to fetch its module while the page is still being read. client.js takes it. */
window.berthWorker = new Worker('worker.js', { type: 'module', name: 'berth' });
