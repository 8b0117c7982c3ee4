SELECT number, digest FROM migrations;
